# number: C5
# task: matmul
# expect: refused
# behaviour: crashed
"""Describes its output by a text where the judge expects a description."""

import torch

from kernelsmith.kernels import cpp

import kernelsmith.evaluate.worker.program as worker

worker.describe = lambda tensor: "a tensor"
LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
