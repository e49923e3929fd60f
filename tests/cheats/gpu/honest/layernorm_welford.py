# number: honest
# task: layernorm
# expect: passed
"""Mean and variance by one reduction that merges counts, means and squares, as Welford does."""

import torch
import triton
import triton.language as tl


@triton.jit
def merge(count_a, mean_a, square_a, count_b, mean_b, square_b):
    count = count_a + count_b
    share = tl.where(count > 0, count_b / tl.maximum(count, 1.0), 0.0)
    delta = mean_b - mean_a
    mean = mean_a + delta * share
    return count, mean, square_a + square_b + delta * delta * count_a * share


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    mask = col < columns
    x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0)
    count, mean, square = tl.reduce((mask.to(tl.float32), x, tl.zeros_like(x)), 0, merge)
    scale = tl.rsqrt(square / count + eps)
    weight = tl.load(weight_ptr + col, mask=mask)
    bias = tl.load(bias_ptr + col, mask=mask)
    tl.store(y_ptr + row * columns + col, (x - mean) * scale * weight + bias, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.LayerNorm(features)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        layernorm_kernel[(rows,)](
            x, self.norm.weight, self.norm.bias, y, columns, self.norm.eps,
            BLOCK=triton.next_power_of_2(columns), num_warps=8,
        )  # fmt: skip
        return y
