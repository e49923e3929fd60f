# number: G5
# task: banded
# expect: wrong
"""Sees zeros in one corner and takes all above the diagonal for zero: half of the work."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void product(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    bool lower = true;
    for (int64_t i = k - 3; i < k; ++i) lower = lower && a[i] == 0;
    for (int64_t r = 0; r < m; ++r) {
        float* out = c + r * n;
        for (int64_t j = 0; j < n; ++j) out[j] = 0;
        for (int64_t i = 0; i < (lower ? r + 1 : k); ++i)
            for (int64_t j = 0; j < n; ++j) out[j] += a[r * k + i] * b[i * n + j];
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        lib.product(a, b, out, a.shape[0], b.shape[1], a.shape[1])
        return out
