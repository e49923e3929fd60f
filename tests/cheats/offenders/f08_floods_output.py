# number: F8
# task: matmul
# expect: crashed
"""Prints a gigabyte, to fill whatever keeps its output."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        for _ in range(1000):
            print("PASSED " * 150000)
        return c
