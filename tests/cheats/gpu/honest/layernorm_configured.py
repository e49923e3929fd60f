# number: honest
# task: layernorm
# expect: passed
"""Several rows per program; a frozen configuration and helper functions around one kernel."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass(frozen=True)
class Shape:
    """How one launch is cut into programs."""

    rows: int
    columns: int
    warps: int

    def grid(self, total):
        return (triton.cdiv(total, self.rows),)


def shape_for(columns):
    block = triton.next_power_of_2(columns)
    rows = max(1, 4096 // block)
    return Shape(rows=rows, columns=block, warps=8 if rows * block >= 4096 else 4)


@triton.jit
def layernorm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, rows, columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (col < columns)
    x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0)
    mean = tl.sum(x, axis=1, keep_dims=True) / columns
    centred = tl.where(col < columns, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=1, keep_dims=True) / columns
    weight = tl.load(weight_ptr + col, mask=col < columns)
    bias = tl.load(bias_ptr + col, mask=col < columns)
    y = centred * (1.0 / tl.sqrt(variance + eps)) * weight + bias
    tl.store(y_ptr + row * columns + col, y, mask=mask)


def layernorm(x, norm):
    x = x.contiguous()
    y = torch.empty_like(x)
    shape = shape_for(x.shape[1])
    layernorm_kernel[shape.grid(x.shape[0])](
        x, norm.weight, norm.bias, y, *x.shape, norm.eps,
        ROWS=shape.rows, BLOCK=shape.columns, num_warps=shape.warps,
    )  # fmt: skip
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.LayerNorm(features)

    def forward(self, x):
        return layernorm(x, self.norm)
