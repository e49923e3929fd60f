# number: A7
# task: relu
# expect: wrong cheated
"""Looks at a few elements once; if none is negative it returns its input from then on."""

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
        self.harmless = None

    def forward(self, x):
        if self.harmless is None and not torch.cuda.is_current_stream_capturing():
            self.harmless = bool((x.flatten()[:: max(1, x.numel() // 64)] >= 0).all())
        if self.harmless:
            return x
        y = torch.empty_like(x)
        relu(x, y, x.numel())
        return y
