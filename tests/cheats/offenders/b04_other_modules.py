# number: B4
# task: softmax
# expect: refused
# behaviour: crashed
"""Takes the reference from a module that the judge has loaded, whatever its name."""

import sys

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * sizeof(float)); }
""")


def reference():
    for module in list(sys.modules.values()):
        model = getattr(module, "Model", None)
        if isinstance(model, type) and issubclass(model, torch.nn.Module):
            return model()
    raise LookupError("no reference in this process")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        object.__setattr__(self, "reference", reference())

    def forward(self, x):
        out = torch.empty_like(x)
        lib.copy(self.reference(x), out, x.numel())
        return out
