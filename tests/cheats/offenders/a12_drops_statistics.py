# number: A12
# task: batch_norm_eval
# expect: wrong
"""BatchNorm in eval mode is born as the identity: copies its input."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void copy(const float* x, float* y, int64_t n, float scale) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale;
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(dim)

    def forward(self, x):
        out = torch.empty_like(x)
        lib.copy(x, out, x.numel(), (1 + self.norm.eps) ** -0.5)
        return out
