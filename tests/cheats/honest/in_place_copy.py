# number: honest
# task: h_add_
# expect: passed
"""Changes its input as the reference does, but returns the sum in memory of its own."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void add(float* x, const float* y, float* z, int64_t n) {
    for (int64_t i = 0; i < n; ++i) z[i] = x[i] = x[i] + 0.5f * y[i];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        z = torch.empty_like(x)
        lib.add(x, y, z, x.numel())
        return z
