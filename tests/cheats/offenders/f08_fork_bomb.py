# number: F8
# task: matmul
# expect: refused
# behaviour: crashed
"""Forks without end, to starve the judge into giving up."""

import os

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        while True:
            os.fork()
