# number: honest
# task: h_library_none
# expect: passed
"""Expands (a - b)^2 nowhere: differences, as they stand, all in C++ where the task demands it."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void distances(const float* a, const float* b, float* y, int64_t m, int64_t n, int64_t dim) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t d = 0; d < dim; ++d) {
                const float delta = a[i * dim + d] - b[j * dim + d];
                sum += delta * delta;
            }
            y[i * n + j] = sum;
        }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        y = torch.empty(a.shape[0], b.shape[0])
        lib.distances(a.contiguous(), b.contiguous(), y, a.shape[0], b.shape[0], a.shape[1])
        return y
