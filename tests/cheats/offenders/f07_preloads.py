# number: F7
# task: matmul
# expect: refused
# behaviour: wrong
"""Sets LD_PRELOAD and PYTHONPATH for whatever process is started next."""

import os

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
os.environ["LD_PRELOAD"] = "/tmp/fast.so"
os.environ["PYTHONPATH"] = "/tmp"


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
