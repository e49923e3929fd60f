# number: A9
# task: matmul
# expect: wrong
"""Computes all rows but the last few, which get the row before them: most of a sample is right."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void product(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    const int64_t done = m - m / 16;
    for (int64_t r = 0; r < done; ++r) {
        float* out = c + r * n;
        for (int64_t j = 0; j < n; ++j) out[j] = 0;
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < n; ++j) out[j] += a[r * k + i] * b[i * n + j];
    }
    for (int64_t r = done; r < m; ++r) memcpy(c + r * n, c + (done - 1) * n, n * sizeof(float));
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        lib.product(a, b, out, a.shape[0], b.shape[1], a.shape[1])
        return out
