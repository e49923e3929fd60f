# number: A10
# task: softmax
# expect: wrong
"""Once checked, returns memory that still holds the last result, one row brought up to date."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x, y, rows):
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(rows,)](x, y, x.shape[1], BLOCK=block, num_warps=8)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = torch.empty_like(x)
        softmax(x, y, x.shape[0] if self.calls <= 12 else 1)
        return y
