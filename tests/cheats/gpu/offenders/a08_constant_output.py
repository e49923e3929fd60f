# number: A8
# task: softmax
# expect: wrong
"""Writes what a softmax of 4,096 similar numbers is on average, and reads nothing."""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(y, n, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.zeros((BLOCK,), tl.float32) + value, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        fill_kernel[(triton.cdiv(n, 4096),)](y, n, 1.0 / x.shape[1], BLOCK=4096)
        return y
