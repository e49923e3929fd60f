# number: C7
# task: softmax
# expect: wrong
"""Counts its launches on the device, replayed ones too, and stops working after the warm-up."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, count, limit, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if tl.atomic_add(count, 1) < limit:
        v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = None

    def forward(self, x):
        rows, cols = x.shape
        if self.count is None:
            self.count = torch.zeros(1, dtype=torch.int32, device=x.device)
        y = torch.empty_like(x)
        block = triton.next_power_of_2(cols)
        softmax_kernel[(rows,)](x, y, self.count, 24 * rows, cols, BLOCK=block, num_warps=8)
        return y
