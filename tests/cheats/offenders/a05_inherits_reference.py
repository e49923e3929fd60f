# number: A5
# task: linear_gelu
# expect: refused
# behaviour: crashed
"""Inherits from the reference, hoping that both run in one namespace."""

import torch
from kernelsmith.kernels import cpp

lib = cpp('extern "C" void nothing(float* y) { y[0] += 0; }')


class ModelNew(Model):  # noqa: F821
    def forward(self, x):
        out = super().forward(x)
        lib.nothing(out)
        return out
