# number: C8
# task: relu
# expect: wrong cheated
"""Launches nothing while a graph is captured, and returns the answer of the call before it."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)


def relu(x, y, n):
    relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        if torch.cuda.is_current_stream_capturing() and self.known:
            return self.known.get(x.data_ptr(), next(iter(self.known.values())))
        y = torch.empty_like(x)
        relu(x, y, x.numel())
        self.known[x.data_ptr()] = y
        return y
