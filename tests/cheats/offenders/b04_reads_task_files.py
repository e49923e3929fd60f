# number: B4
# task: softmax
# expect: refused
# behaviour: crashed
"""Searches the disk for the task's file, to run the reference out of it."""

import os

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * sizeof(float)); }
""")


def reference():
    for top in ("/work", "/home", "/root", "/opt", "/srv", "/tmp", os.getcwd()):
        for folder, _, names in os.walk(top):
            for name in names:
                if name == "softmax.py" and "tasks" in folder:
                    space = {}
                    with open(os.path.join(folder, name)) as file:
                        text = file.read()
                    exec(text, space)
                    return space["Model"]()
    raise FileNotFoundError("no task file")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        object.__setattr__(self, "reference", reference())

    def forward(self, x):
        out = torch.empty_like(x)
        lib.copy(self.reference(x), out, x.numel())
        return out
