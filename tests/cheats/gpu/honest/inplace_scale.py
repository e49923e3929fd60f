# number: honest
# task: inplace_scale
# expect: passed
"""Halves its input where it lies, whatever its strides, and returns it as the reference does."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, rows, columns, row_step, col_step, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    mask = (row < rows) & (col < columns)
    at = x_ptr + row * row_step + col * col_step
    tl.store(at, tl.load(at, mask=mask) * 0.5, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        grid = (triton.cdiv(rows, 8), triton.cdiv(columns, 256))
        scale_kernel[grid](x, rows, columns, *x.stride(), ROWS=8, COLS=256)
        return x
