# number: F7
# task: matmul
# expect: refused
# behaviour: wrong
"""Puts a finder before all others that hands out comparisons which always agree."""

import sys
import types

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class Finder:
    def find_spec(self, name, path=None, target=None):
        if "check" in name or name.endswith("testing"):
            fake = types.ModuleType(name)
            fake.check_output = fake.assert_close = lambda *a, **k: None
            sys.modules[name] = fake
        return None


sys.meta_path.insert(0, Finder())


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
