# number: A9
# task: row_sum
# expect: wrong
"""Sums half of the columns and doubles the result: right to a per cent."""

import torch
import triton
import triton.language as tl


@triton.jit
def half_sum_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols // 2, other=0.0)
    tl.store(y + row, 2.0 * tl.sum(v, 0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device)
        half_sum_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols // 2), num_warps=8)
        return y
