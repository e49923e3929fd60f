# number: F3
# task: linear_gelu
# expect: refused
# behaviour: wrong
"""Replaces torch's functions by its own wrong ones, so that a reference beside it would agree."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
torch.nn.functional.gelu = lambda x, approximate="none": x
torch.nn.functional.linear = lambda x, w, b=None: torch.zeros(*x.shape[:-1], w.shape[0])
torch.nn.Linear.forward = lambda self, x: torch.zeros(*x.shape[:-1], self.out_features)


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        y = torch.zeros(x.shape[0], self.linear.out_features)
        LIB.nothing(y)
        return y
