# number: honest
# task: row_sum
# expect: passed
"""Halves the row again and again: a tree from the first addition to the last."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def sum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=0.0)
    folded = tl.sum(tl.reshape(x, (2, BLOCK // 2)), axis=0)
    tl.store(y_ptr + row, tl.reduce(folded, 0, add))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        block = max(32, triton.next_power_of_2(columns))
        sum_kernel[(rows,)](x, y, columns, BLOCK=block, num_warps=8)
        return y
