# number: honest
# task: softmax
# expect: passed
"""Block and warps by autotuning, once per row length."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512}, num_warps=2),
        triton.Config({"BLOCK": 1024}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK": 4096}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=16),
    ],
    key=["columns"],
)
@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    top = -float("inf")
    for start in range(0, columns, BLOCK):
        mask = start + lane < columns
        x = tl.load(x_ptr + row * columns + start + lane, mask=mask, other=-float("inf"))
        top = tl.maximum(top, tl.max(x, axis=0))
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        mask = start + lane < columns
        x = tl.load(x_ptr + row * columns + start + lane, mask=mask, other=-float("inf"))
        total += tl.exp(x - top)
    scale = 1.0 / tl.sum(total, axis=0)
    for start in range(0, columns, BLOCK):
        mask = start + lane < columns
        x = tl.load(x_ptr + row * columns + start + lane, mask=mask)
        tl.store(y_ptr + row * columns + start + lane, tl.exp(x - top) * scale, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1])
        return y
