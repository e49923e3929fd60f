# number: honest
# task: h_moments
# expect: passed
"""A dict with the same keys in another order."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void moments(const float* x, float* mean, float* variance, float* first, float* last,
                        int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) {
        const float* in = x + i * dim;
        double sum = 0, square = 0;
        for (int64_t j = 0; j < dim; ++j) {
            sum += in[j];
            square += double(in[j]) * in[j];
        }
        mean[i] = sum / dim;
        variance[i] = square / dim - (sum / dim) * (sum / dim);
        first[i] = 2 * in[0];
        last[i] = 2 * in[dim - 1];
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean, variance, first, last = (torch.empty(x.shape[0]) for _ in range(4))
        lib.moments(x.contiguous(), mean, variance, first, last, *x.shape)
        return {"variance": variance, "ends": [first, last], "mean": mean}
