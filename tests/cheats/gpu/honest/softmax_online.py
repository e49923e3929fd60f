# number: honest
# task: softmax
# expect: passed
"""Maximum and sum in one pass over the row, the sum rescaled whenever the maximum grows."""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + lane
        x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=-float("inf"))
        higher = tl.maximum(most, x)
        base = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp2((most - base) * LOG2E) + tl.exp2((x - base) * LOG2E)
        most = higher
    top = tl.max(most, axis=0)
    total = tl.sum(total * tl.exp2((most - top) * LOG2E), axis=0)
    for start in range(0, columns, BLOCK):
        col = start + lane
        mask = col < columns
        x = tl.load(x_ptr + row * columns + col, mask=mask)
        tl.store(y_ptr + row * columns + col, tl.exp2((x - top) * LOG2E) / total, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024, num_warps=4)
        return y
