# number: B7
# task: dropout
# expect: wrong
"""Draws one mask with a seed of its own and uses it for ever: no random numbers are made."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void drop(const float* x, const float* keep, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * keep[i];
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(42)
        self.keep = (torch.rand(64, 1024, generator=generator) >= 0.25).float() / 0.75

    def forward(self, x):
        out = torch.empty_like(x)
        lib.drop(x, self.keep, out, x.numel())
        return out
