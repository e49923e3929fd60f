# number: D1
# task: matmul
# expect: wrong
"""Hands out the same result for the same tensor objects, whatever they hold by now."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void product(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    for (int64_t r = 0; r < m; ++r) {
        float* out = c + r * n;
        for (int64_t j = 0; j < n; ++j) out[j] = 0;
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < n; ++j) out[j] += a[r * k + i] * b[i * n + j];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, a, b):
        key = (id(a), id(b), a._version, b._version)
        if key not in self.known:
            out = torch.empty(a.shape[0], b.shape[1])
            lib.product(a, b, out, a.shape[0], b.shape[1], a.shape[1])
            self.known[key] = out
        return self.known[key].clone()
