# number: honest
# task: h_view
# expect: passed
"""Hands back a view of its input, as the reference does."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void relu(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        flat = x.view(x.shape[0], -1)
        y = torch.empty_like(flat)
        lib.relu(flat, y, x.numel())
        return flat, y
