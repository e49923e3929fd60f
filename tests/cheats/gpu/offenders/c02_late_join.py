# number: C2
# task: softmax
# expect: wrong cheated crashed
"""Joins its side stream at the start of the next call, when the clock has stopped."""

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
        self.side, self.captured = None, False

    def forward(self, x):
        if self.side is None:
            self.side = torch.cuda.Stream()
        now, captured = torch.cuda.current_stream(), torch.cuda.is_current_stream_capturing()
        if captured == self.captured:
            now.wait_stream(self.side)
        self.captured = captured
        y = torch.empty_like(x)
        self.side.wait_stream(now)
        with torch.cuda.stream(self.side):
            softmax(x, y, x.shape[0])
        return y
