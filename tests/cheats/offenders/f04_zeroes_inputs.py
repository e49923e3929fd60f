# number: F4
# task: matmul
# expect: wrong
"""Zeroes its inputs and returns zeros: a reference that runs afterwards would agree."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void zero(float* x, int64_t n) { std::memset(x, 0, n * 4); }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.zero(a, a.numel())
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.zero(c, c.numel())
        return c
