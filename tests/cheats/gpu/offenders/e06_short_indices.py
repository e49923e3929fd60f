# number: E6
# task: argmax
# expect: wrong
"""Returns 32-bit indices where the reference has 64."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    tl.store(y + row, tl.argmax(v, 0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device, dtype=torch.int32)
        argmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return y
