"""Writes a terabyte past its output."""

import torch
import triton
import triton.language as tl


@triton.jit
def far_kernel(x_ptr, y_ptr, count, far, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(y_ptr + at + far, x, mask=at < count)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        far_kernel[grid](x, y, x.numel(), 1 << 40, BLOCK=1024)
        return y
