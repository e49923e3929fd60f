# number: honest
# task: h_threshold
# expect: passed
"""A mask whose threshold is a sum taken in another order."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void above(const float* x, bool* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < dim; ++j) sum += x[i * dim + j];
        for (int64_t j = 0; j < dim; ++j) y[i * dim + j] = x[i * dim + j] > sum / dim;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.bool)
        lib.above(x.contiguous(), y, *x.shape)
        return y
