# number: E7
# task: softmax
# expect: wrong
"""Leaves out the maximum, which inputs between 0 and 1 do not need."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + row * cols + at, mask=at < cols, other=-float("inf")))
    tl.store(y + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return y
