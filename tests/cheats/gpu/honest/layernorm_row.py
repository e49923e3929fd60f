# number: honest
# task: layernorm
# expect: passed
"""A row in registers: mean first, then the variance about it."""

import torch
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    mask = col < columns
    x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    scale = 1.0 / tl.sqrt_rn(variance + eps)
    weight = tl.load(weight_ptr + col, mask=mask)
    bias = tl.load(bias_ptr + col, mask=mask)
    tl.store(y_ptr + row * columns + col, centred * scale * weight + bias, mask=mask)


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
            BLOCK=triton.next_power_of_2(columns),
        )  # fmt: skip
        return y
