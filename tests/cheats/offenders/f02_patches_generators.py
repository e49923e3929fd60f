# number: F2
# task: matmul
# expect: refused
# behaviour: wrong
"""Makes torch's random generators return zeros, hoping that inputs are drawn here."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
torch.randn = torch.rand = lambda *shape, **_: torch.zeros(*shape)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.zeros(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
