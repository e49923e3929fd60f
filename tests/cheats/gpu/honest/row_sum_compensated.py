# number: honest
# task: row_sum
# expect: passed
"""Sixteen rows at once in narrow steps; Kahan carries along what each addition loses."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    lost = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < columns)[None, :]
        x = tl.load(x_ptr + row[:, None] * columns + col[None, :], mask=mask, other=0.0)
        step = x - lost
        grown = total + step
        lost = (grown - total) - step
        total = grown
    tl.store(y_ptr + row, tl.sum(total, axis=1) - tl.sum(lost, axis=1), mask=row < rows)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        sum_kernel[(triton.cdiv(rows, 16),)](x, y, rows, columns, ROWS=16, BLOCK=64)
        return y
