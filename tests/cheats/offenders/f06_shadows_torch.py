# number: F6
# task: matmul
# expect: wrong crashed
"""Leaves a numpy.py and a task result in every place it can write, for the next import to find."""

import contextlib
import os

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')
for place in (os.getcwd(), "/tmp", os.path.dirname(torch.__file__), os.path.expanduser("~")):
    with contextlib.suppress(OSError):
        with open(os.path.join(place, "numpy.py"), "w") as file:
            file.write("allclose = isfinite = lambda *a, **k: True\n")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
