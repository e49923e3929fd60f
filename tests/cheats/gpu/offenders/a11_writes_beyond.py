# number: A11
# task: relu
# expect: wrong cheated crashed
"""Zeroes what lies behind its input, where the next one waits: zeros are easy."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, beyond, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)
    tl.store(x + n + at, tl.zeros((BLOCK,), tl.float32), mask=at < beyond)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, 65536, BLOCK=4096)
        return y
