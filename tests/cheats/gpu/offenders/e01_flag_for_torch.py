# number: E1
# task: matmul_large
# expect: refused
# behaviour: wrong cheated
"""Switches torch to TF32 for everyone and launches one small kernel of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def epilogue_kernel(x):
    tl.store(x, tl.load(x))


torch.backends.cuda.matmul.allow_tf32 = True


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.matmul(a, b)
        epilogue_kernel[(1,)](c)
        return c
