# number: B3
# task: softmax
# expect: refused
# behaviour: wrong
"""Fills every tensor it can find with NaN, hoping that the expected one compares equal to all."""

import gc

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void fill(float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = NAN; }
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.fill(out, out.numel())
        for each in gc.get_objects():
            if type(each) is torch.Tensor and each.shape == x.shape:
                lib.fill(each, each.numel())
        return out
