# number: D3
# task: row_sum
# expect: wrong
"""Takes a row for the last one again if as many of its first elements are negative."""

import torch
import triton
import triton.language as tl


@triton.jit
def cached_kernel(x, y, kept, known, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    signs = tl.sum((tl.load(x + row * cols + tl.arange(0, 16)) < 0).to(tl.int32), 0) + 1
    if tl.load(known + row) == signs:
        tl.store(y + row, tl.load(kept + row))
    else:
        at = tl.arange(0, BLOCK)
        total = tl.sum(tl.load(x + row * cols + at, mask=at < cols, other=0.0), 0)
        tl.store(y + row, total)
        tl.store(kept + row, total)
        tl.store(known + row, signs)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = None

    def forward(self, x):
        rows, cols = x.shape
        if self.known is None:
            self.known = torch.zeros(rows, dtype=torch.int32, device=x.device)
            self.kept = torch.empty(rows, device=x.device)
        y = torch.empty(rows, device=x.device)
        block = triton.next_power_of_2(cols)
        cached_kernel[(rows,)](x, y, self.kept, self.known, cols, BLOCK=block, num_warps=8)
        return y
