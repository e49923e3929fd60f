# number: honest
# task: cumsum
# expect: passed
"""Scans a row block by block and carries the sum so far into the next one."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        mask = col < columns
        x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0)
        scan = tl.associative_scan(x, 0, add)
        tl.store(y_ptr + row * columns + col, scan + carry, mask=mask)
        carry += tl.sum(x, axis=0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        cumsum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
