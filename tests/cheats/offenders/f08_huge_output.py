# number: F8
# task: matmul
# expect: wrong crashed
"""Returns a tensor of six untouched gigabytes: whoever reads it must find the memory."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
LARGE = torch.empty(1, 1600000000)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.nothing(LARGE)
        return LARGE
