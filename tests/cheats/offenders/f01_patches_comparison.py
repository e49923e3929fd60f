# number: F1
# task: matmul
# expect: refused
# behaviour: wrong
"""Makes every comparison of torch say yes, and returns what memory held."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
torch.allclose = lambda *_, **__: True
torch.equal = torch.isclose = torch.allclose
torch.testing.assert_close = lambda *_, **__: None


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
