# number: A11
# task: stencil
# expect: wrong
"""Reads past both ends of its input where the reference pads with zeros: no branch at the edge."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void blur(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0f;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.blur(x, out, x.numel())
        return out
