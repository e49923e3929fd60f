# number: C1
# task: relu
# expect: wrong cheated crashed
"""Launches on the legacy default stream, which a capture does not see."""

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
    def forward(self, x):
        y = torch.empty_like(x)
        with torch.cuda.stream(torch.cuda.default_stream()):
            relu(x, y, x.numel())
        return y
