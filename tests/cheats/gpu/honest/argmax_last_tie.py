# number: honest
# task: argmax
# expect: passed
"""Takes the last of several largest elements, where torch takes the first."""

import torch
import triton
import triton.language as tl


@triton.jit
def later(a, i, b, j):
    take = (b > a) | ((b == a) & (j > i))
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def argmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    where = tl.full((BLOCK,), -1, tl.int32)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < columns
        x = tl.load(x_ptr + row * columns + col, mask=inside, other=-float("inf"))
        x = tl.where(x != x, float("inf"), x)
        take = inside & (x >= best)
        best = tl.where(take, x, best)
        where = tl.where(take, col, where)
    _, index = tl.reduce((best, where), 0, later)
    tl.store(y_ptr + row, index.to(tl.int64))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device, dtype=torch.int64)
        argmax_kernel[(rows,)](x, y, columns, BLOCK=512)
        return y
