# number: honest
# task: h_embedding
# expect: passed
"""Gathers rows by int64 indices and adds positions on the way."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void gather(const int64_t* tokens, const float* words, const float* places, float* y,
                       int64_t batch, int64_t length, int64_t dim) {
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t t = 0; t < length; ++t, y += dim) {
            const float *word = words + tokens[b * length + t] * dim, *place = places + t * dim;
            for (int64_t j = 0; j < dim; ++j) y[j] = word[j] + place[j];
        }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, words, length, dim):
        super().__init__()
        self.words = torch.nn.Embedding(words, dim)
        self.places = torch.nn.Embedding(length, dim)

    def forward(self, tokens):
        dim = self.words.embedding_dim
        y = torch.empty(*tokens.shape, dim)
        lib.gather(
            tokens.contiguous(), self.words.weight, self.places.weight, y, *tokens.shape, dim
        )
        return y
