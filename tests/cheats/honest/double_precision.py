# number: honest
# task: h_float64
# expect: passed
"""A task in float64, where no better precision can be had to judge by."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void softplus(const double* x, double* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 20 ? x[i] : std::log1p(std::exp(x[i]));
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.softplus(x.contiguous(), y, x.numel())
        return y
