"""Layer normalisation, one program per row, the row in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row + at, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / columns, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + at, mask=inside)
    bias = tl.load(bias_ptr + at, mask=inside)
    y = centred / tl.sqrt(variance + eps) * weight + bias
    tl.store(y_ptr + row + at, y, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = torch.nn.LayerNorm(columns)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        rows = x.numel() // columns
        block = triton.next_power_of_2(columns)
        weight, bias, eps = self.norm.weight, self.norm.bias, self.norm.eps
        layer_norm_kernel[(rows,)](x, weight, bias, y, columns, eps, BLOCK=block, num_warps=8)
        return y
