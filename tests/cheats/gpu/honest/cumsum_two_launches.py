# number: honest
# task: cumsum
# expect: passed
"""Sums of all blocks first; then every block scans itself and adds what stands before it."""

import torch
import triton
import triton.language as tl


@triton.jit
def totals_kernel(x_ptr, total_ptr, columns, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    col = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=0.0)
    tl.store(total_ptr + row * blocks + block, tl.sum(x, axis=0))


@triton.jit
def scan_kernel(
    x_ptr, total_ptr, y_ptr, columns, blocks, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    each = tl.arange(0, BLOCKS)
    before = tl.load(total_ptr + row * blocks + each, mask=each < block, other=0.0)
    col = block * BLOCK + tl.arange(0, BLOCK)
    mask = col < columns
    x = tl.load(x_ptr + row * columns + col, mask=mask, other=0.0)
    y = tl.cumsum(x, axis=0) + tl.sum(before, axis=0)
    tl.store(y_ptr + row * columns + col, y, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        blocks = triton.cdiv(columns, 512)
        totals = torch.empty(rows, blocks, device=x.device, dtype=torch.float32)
        y = torch.empty_like(x)
        totals_kernel[(rows, blocks)](x, totals, columns, blocks, BLOCK=512)
        scan_kernel[(rows, blocks)](
            x, totals, y, columns, blocks, BLOCK=512, BLOCKS=triton.next_power_of_2(blocks)
        )
        return y
