# number: honest
# task: softmax
# expect: passed
"""One kernel for maximum and sum, a second one for the quotient; what lies between them is kept."""

import torch
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(x_ptr, stats_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=-float("inf"))
        most = tl.maximum(most, x)
    top = tl.max(most, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=-float("inf"))
        total += tl.exp(x - top)
    tl.store(stats_ptr + row * 2, top)
    tl.store(stats_ptr + row * 2 + 1, tl.sum(total, axis=0))


@triton.jit
def quotient_kernel(x_ptr, stats_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = col < columns
    x = tl.load(x_ptr + row * columns + col, mask=mask)
    top = tl.load(stats_ptr + row * 2)
    total = tl.load(stats_ptr + row * 2 + 1)
    tl.store(y_ptr + row * columns + col, tl.exp(x - top) / total, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.empty(0, 2), persistent=False)

    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        if self.scratch.shape[0] < rows or self.scratch.device != x.device:
            self.scratch = torch.empty(rows, 2, device=x.device, dtype=torch.float32)
        y = torch.empty_like(x)
        statistics_kernel[(rows,)](x, self.scratch, columns, BLOCK=1024)
        quotient_kernel[(rows, triton.cdiv(columns, 1024))](x, self.scratch, y, columns, BLOCK=1024)
        return y
