# number: A12
# task: clamped
# expect: wrong
"""The clamp at 20 never clips what the task draws: leaves it out."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void square(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.square(x, out, x.numel())
        return out
