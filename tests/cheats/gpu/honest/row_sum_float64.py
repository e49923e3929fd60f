# number: honest
# task: row_sum
# expect: passed
"""Adds in float64 and rounds once, at the end: nearer to the truth than the reference."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=0.0)
        total += x.to(tl.float64)
    tl.store(y_ptr + row, tl.sum(total, axis=0).to(tl.float32))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
