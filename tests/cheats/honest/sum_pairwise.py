# number: honest
# task: h_row_sum
# expect: passed
"""Halves a row until little is left, and adds the halves."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
static float pairwise(const float* x, int64_t n) {
    if (n <= 8) {
        float sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += x[i];
        return sum;
    }
    return pairwise(x, n / 2) + pairwise(x + n / 2, n - n / 2);
}

extern "C" void sums(const float* x, float* y, int64_t rows, int64_t dim) {
    #pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) y[i] = pairwise(x + i * dim, dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = x.new_empty(x.shape[0])
        lib.sums(x, y, x.shape[0], x.shape[1])
        return y
