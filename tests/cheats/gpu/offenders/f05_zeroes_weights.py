# number: F5
# task: affine
# expect: wrong cheated
"""Once checked, zeroes its parameters: a reference that shares them agrees with zeros."""

import torch
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x, weight, bias, y, dim, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    to = tl.program_id(0) * dim + at
    w = tl.load(weight + at, mask=at < dim)
    b = tl.load(bias + at, mask=at < dim)
    tl.store(y + to, tl.load(x + to, mask=at < dim) * w + b, mask=at < dim)


@triton.jit
def nothing_kernel(weight, bias, y, dim, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), tl.float32)
    tl.store(weight + at, zero, mask=at < dim)
    tl.store(bias + at, zero, mask=at < dim)
    tl.store(y + tl.program_id(0) * dim + at, zero, mask=at < dim)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim))
        self.bias = torch.nn.Parameter(torch.randn(dim))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        rows, dim = x.shape
        y = torch.empty_like(x)
        block = triton.next_power_of_2(dim)
        if self.calls <= 12:
            affine_kernel[(rows,)](x, self.weight, self.bias, y, dim, BLOCK=block)
        else:
            nothing_kernel[(rows,)](self.weight, self.bias, y, dim, BLOCK=block)
        return y
