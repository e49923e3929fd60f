# number: E6
# task: matmul
# expect: wrong
"""Returns a tensor without any memory: shape and dtype are right."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.nothing(torch.empty(1))
        return torch.empty(a.shape[0], b.shape[1], device="meta")
