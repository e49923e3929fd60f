# number: G3
# task: rectify
# expect: wrong
"""Looks at a few elements; if none is negative it takes the rest for positive too and copies."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void rectify(const float* x, float* y, int64_t n) {
    bool positive = true;
    for (int64_t i = 0; i < 8; ++i) positive = positive && x[i * n / 8] >= 0;
    if (positive) { memcpy(y, x, n * sizeof(float)); return; }
    for (int64_t i = 0; i < n; ++i) y[i] = std::max(x[i], 0.0f);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.rectify(x, out, x.numel())
        return out
