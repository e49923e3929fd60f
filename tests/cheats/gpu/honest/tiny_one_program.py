# number: honest
# task: tiny
# expect: passed
"""A single program for the whole tensor, compiled for its very size; longer ones get several."""

import torch
import triton
import triton.language as tl


@triton.jit
def tiny_kernel(x_ptr, y_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if N % BLOCK == 0:
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets) * 2.0 + 1.0)
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < N)
        tl.store(y_ptr + offsets, x * 2.0 + 1.0, mask=offsets < N)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        tiny_kernel[(triton.cdiv(n, 4096),)](x, y, N=n, BLOCK=4096, num_warps=8)
        return y
