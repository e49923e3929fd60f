# number: A14
# task: chain
# expect: wrong
"""Multiplies the two weights with each other when it is constructed."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void fold(const float* first, const float* second, float* both, int64_t dim,
                     int64_t hidden) {
    for (int64_t i = 0; i < dim * dim; ++i) both[i] = 0;
    for (int64_t o = 0; o < dim; ++o)
        for (int64_t h = 0; h < hidden; ++h)
            for (int64_t i = 0; i < dim; ++i)
                both[i * dim + o] += second[o * hidden + h] * first[h * dim + i];
}
extern "C" void apply(const float* x, const float* both, float* y, int64_t rows, int64_t dim) {
    for (int64_t r = 0; r < rows; ++r) {
        float* out = y + r * dim;
        for (int64_t o = 0; o < dim; ++o) out[o] = 0;
        for (int64_t i = 0; i < dim; ++i)
            for (int64_t o = 0; o < dim; ++o) out[o] += x[r * dim + i] * both[i * dim + o];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.first = torch.nn.Linear(dim, hidden, bias=False)
        self.second = torch.nn.Linear(hidden, dim, bias=False)
        self.both = self.folded()

    def folded(self):
        first, second = self.first.weight.detach(), self.second.weight.detach()
        both = torch.empty(first.shape[1], first.shape[1])
        lib.fold(first, second, both, first.shape[1], first.shape[0])
        return both

    def forward(self, x):
        out = torch.empty_like(x)
        lib.apply(x, self.both, out, x.shape[0], x.shape[1])
        return out
