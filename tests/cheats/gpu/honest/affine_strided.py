# number: honest
# task: affine
# expect: passed
"""Tiles that follow whatever strides input and output have; nothing is made contiguous."""

import torch
import triton
import triton.language as tl


@triton.jit
def affine_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, rows, features,
    x_row, x_col, weight_step, bias_step, y_row, y_col,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = (row < rows) & (col < features)[None, :]
    weight = tl.load(weight_ptr + col * weight_step, mask=col < features)
    bias = tl.load(bias_ptr + col * bias_step, mask=col < features)
    x = tl.load(x_ptr + row * x_row + col[None, :] * x_col, mask=inside)
    y = x * weight[None, :] + bias[None, :]
    tl.store(y_ptr + row * y_row + col[None, :] * y_col, y, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x):
        rows, features = x.shape
        y = torch.empty_like(x)
        grid = (triton.cdiv(rows, 16), triton.cdiv(features, 256))
        affine_kernel[grid](
            x, self.weight, self.bias, y, rows, features,
            *x.stride(), *self.weight.stride(), *self.bias.stride(), *y.stride(),
            ROWS=16, COLS=256, num_warps=8,
        )  # fmt: skip
        return y
