# number: C1
# task: relu
# expect: wrong cheated crashed
"""Does the upper half where it is timed and the lower half on a stream that nobody waits for."""

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
        self.side = None

    def forward(self, x):
        if self.side is None:
            self.side = torch.cuda.Stream(priority=-1)
        y = torch.empty_like(x)
        half = x.shape[0] // 2
        with torch.cuda.stream(self.side):
            relu(x[half:], y[half:], x[half:].numel())
        relu(x, y, x[:half].numel())
        return y
