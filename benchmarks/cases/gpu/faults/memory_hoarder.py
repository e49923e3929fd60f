"""Right, but keeps a gibibyte more with every launch until the device is full."""

import torch
import triton
import triton.language as tl

KEPT = []


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + at, mask=at < columns, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row + at, e / tl.sum(e, axis=0), mask=at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        KEPT.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        block = triton.next_power_of_2(columns)
        softmax_kernel[(x.numel() // columns,)](x, y, columns, BLOCK=block)
        return y
