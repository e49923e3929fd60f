# number: honest
# task: h_slices
# expect: passed
"""Views of its input with gaps and with stride 0, as the reference returns them."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void product(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[2 * i] * x[2 * i + 1];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], x.shape[1] // 2)
        lib.product(x.contiguous(), y, y.numel())
        return x[:, ::2], y, x[:, :1].expand(-1, 8)
