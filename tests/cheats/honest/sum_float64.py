# number: honest
# task: h_row_sum
# expect: passed
"""Adds in float64: better than eager, which is no crime."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" {
static double add(const float* x, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[j];
    return sum;
}
void sums(const float* x, float* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) y[i] = (float)add(x + i * dim, dim);
}
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(len(x))
        lib.sums(x.contiguous(), y, *x.shape)
        return y
