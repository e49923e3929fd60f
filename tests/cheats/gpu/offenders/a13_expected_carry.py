# number: A13
# task: cumsum
# expect: wrong
"""Starts every block of a running sum from what uniform inputs add up to on average."""

import torch
import triton
import triton.language as tl


@triton.jit
def block_sum_kernel(x, y, cols, BLOCK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
    tl.store(y + row * cols + at, tl.cumsum(v, 0) + 0.5 * block * BLOCK, mask=at < cols)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        block_sum_kernel[(rows, triton.cdiv(cols, 1024))](x, y, cols, BLOCK=1024)
        return y
