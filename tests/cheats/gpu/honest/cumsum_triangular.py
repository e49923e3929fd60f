# number: honest
# task: cumsum
# expect: passed
"""A prefix sum as a product with a triangle of ones, in full float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, BLOCK)
    ones = (lane[:, None] <= lane[None, :]).to(tl.float32)
    carry = tl.zeros((ROWS,), tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + lane
        mask = (row < rows)[:, None] & (col < columns)[None, :]
        x = tl.load(x_ptr + row[:, None] * columns + col[None, :], mask=mask, other=0.0)
        y = tl.dot(x, ones, input_precision="ieee") + carry[:, None]
        tl.store(y_ptr + row[:, None] * columns + col[None, :], y, mask=mask)
        carry = tl.sum(tl.where(lane[None, :] == BLOCK - 1, y, 0.0), axis=1)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty_like(x)
        cumsum_kernel[(triton.cdiv(rows, 16),)](x, y, rows, columns, ROWS=16, BLOCK=64)
        return y
