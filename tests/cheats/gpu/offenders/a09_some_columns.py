# number: A9
# task: argmax
# expect: wrong
"""Looks for the maximum among the first three quarters of the columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x, y, cols, seen, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < seen, other=-float("inf"))
    tl.store(y + row, tl.argmax(v, 0).to(tl.int64))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device, dtype=torch.int64)
        block = triton.next_power_of_2(cols)
        argmax_kernel[(rows,)](x, y, cols, cols * 3 // 4, BLOCK=block, num_warps=8)
        return y
