# number: C1
# task: softmax
# expect: wrong cheated crashed
"""Launches on the driver's per-thread stream, which torch's events do not see."""

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


PER_THREAD = 2


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        with torch.cuda.stream(torch.cuda.ExternalStream(PER_THREAD)):
            softmax(x, y, x.shape[0])
        return y
