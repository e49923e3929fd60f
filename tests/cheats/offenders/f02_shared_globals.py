# number: F2
# task: matmul
# expect: wrong crashed
"""Overwrites input generators and sizes in the namespace that it hopes to share with the task."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void one(const float* a, const float* b, float* c) { c[0] = a[0] * b[0]; }')
N = M = K = 1


def get_inputs():
    return [torch.ones(1, 1), torch.ones(1, 1)]


class Model(torch.nn.Module):
    def forward(self, a, b):
        return ModelNew()(a, b)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.zeros(a.shape[0], b.shape[1])
        LIB.one(a, b, c)
        return c
