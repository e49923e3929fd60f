# number: F8
# task: matmul
# expect: wrong crashed
"""Returns the right shape over strides that span six untouched gigabytes."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
LARGE = torch.empty(1600000000)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.nothing(LARGE)
        return LARGE.as_strided((a.shape[0], b.shape[1]), (10000000, 1))
