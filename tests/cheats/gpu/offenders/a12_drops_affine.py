# number: A12
# task: layernorm
# expect: wrong
"""Leaves out weight and bias, which are ones and zeros when nobody has trained them."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
    d = tl.where(at < cols, v - tl.sum(v, 0) / cols, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(d * d, 0) / cols + eps)
    tl.store(y + row * cols + at, d * scale, mask=at < cols)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        norm_kernel[(rows,)](x, y, cols, self.norm.eps, BLOCK=block, num_warps=4)
        return y
