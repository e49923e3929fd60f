# number: honest
# task: matmul
# expect: passed
"""Blocked over all three dimensions, one thread."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
#define BLOCK 32
extern "C" void matmul(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
    std::memset(c, 0, sizeof(float) * m * n);
    for (int64_t i0 = 0; i0 < m; i0 += BLOCK)
        for (int64_t p0 = 0; p0 < k; p0 += BLOCK)
            for (int64_t i = i0; i < std::min(m, i0 + BLOCK); ++i)
                for (int64_t p = p0; p < std::min(k, p0 + BLOCK); ++p) {
                    const float s = a[i * k + p];
                    for (int64_t j = 0; j < n; ++j) c[i * n + j] += s * b[p * n + j];
                }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty(m, n)
        lib.matmul(a.contiguous(), b.contiguous(), c, m, k, n)
        return c
