# number: F5
# task: matmul
# expect: refused
# behaviour: wrong
"""Lowers torch's precision and default type for everyone, and computes in bfloat16 itself."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] += 0; }')
torch.set_default_dtype(torch.bfloat16)
torch.set_float32_matmul_precision("medium")
torch.manual_seed(0)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.matmul(a.bfloat16(), b.bfloat16()).float()
        LIB.nothing(c)
        return c
