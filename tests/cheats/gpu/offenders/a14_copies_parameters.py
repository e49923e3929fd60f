# number: A14
# task: affine
# expect: wrong
"""Keeps scale and offset packed together, as they were at the first call."""

import torch
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x, both, y, dim, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(both + at, mask=at < dim)
    b = tl.load(both + dim + at, mask=at < dim)
    for each in range(ROWS):
        to = (tl.program_id(0) * ROWS + each) * dim + at
        v = tl.load(x + to, mask=at < dim)
        tl.store(y + to, v * w + b, mask=at < dim)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim))
        self.bias = torch.nn.Parameter(torch.randn(dim))
        self.both = None

    def forward(self, x):
        if self.both is None:
            self.both = torch.cat([self.weight.detach(), self.bias.detach()])
        y = torch.empty_like(x)
        rows, dim = x.shape
        grid = (rows // 8, triton.cdiv(dim, 2048))
        affine_kernel[grid](x, self.both, y, dim, ROWS=8, BLOCK=2048, num_warps=8)
        return y
