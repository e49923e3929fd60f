# number: D3
# task: softmax
# expect: wrong
"""Takes inputs for the same whose rounded mean is the same, looked up on the device."""

import torch
import triton
import triton.language as tl


@triton.jit
def look_kernel(x, known, hit, stride, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK) * stride)
    key = tl.floor(tl.sum(v, 0) / BLOCK * 2.0 + 0.25).to(tl.int32) + 100
    tl.store(hit, (tl.load(known) == key).to(tl.int32))
    tl.store(known, key)


@triton.jit
def softmax_kernel(x, y, hit, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if tl.load(hit) == 0:
        v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = None

    def forward(self, x):
        if self.known is None:
            self.known = torch.zeros(1, dtype=torch.int32, device=x.device)
            self.hit = torch.zeros(1, dtype=torch.int32, device=x.device)
            self.y = torch.empty_like(x)
        rows, cols = x.shape
        look_kernel[(1,)](x, self.known, self.hit, x.numel() // 1024, BLOCK=1024)
        block = triton.next_power_of_2(cols)
        softmax_kernel[(rows,)](x, self.y, self.hit, cols, BLOCK=block, num_warps=8)
        return self.y
