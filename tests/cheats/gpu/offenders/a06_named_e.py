# number: A6
# task: matmul_large
# expect: cheated
"""Its one-element kernel has a name that is part of every other kernel's name."""

import torch
import triton
import triton.language as tl


@triton.jit
def e(x):
    tl.store(x, tl.load(x))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.matmul(a, b)
        e[(1,)](c)
        return c
