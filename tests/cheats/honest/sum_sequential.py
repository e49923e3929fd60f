# number: honest
# task: h_row_sum
# expect: passed
"""Adds a row up one by one in float32: the plainest sum there is."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void sums(const float* x, float* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < dim; ++j) sum += x[i * dim + j];
        y[i] = sum;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[:-1])
        lib.sums(x.contiguous(), y, x.shape[0], x.shape[1])
        return y
