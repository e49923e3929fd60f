# number: A11
# task: stencil
# expect: wrong
"""Makes its own zero padding by writing over what lies before and after its input."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void blur(float* x, float* y, int64_t n) {
    x[-1] = x[n] = 0;
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0f;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.blur(x, out, x.numel())
        return out
