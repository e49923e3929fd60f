# number: honest
# task: bf16_add
# expect: passed
"""Widens to float32, adds, and rounds once."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(z_ptr + offsets, (x + y).to(tl.bfloat16), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        n = x.numel()
        add_kernel[(triton.cdiv(n, 2048),)](x, y, z, n, BLOCK=2048, num_warps=8)
        return z
