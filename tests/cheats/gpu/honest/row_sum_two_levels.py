# number: honest
# task: row_sum
# expect: passed
"""Sums of pieces into a buffer kept for each shape, then a second kernel over the pieces."""

import torch
import triton
import triton.language as tl


@triton.jit
def pieces_kernel(x_ptr, part_ptr, columns, pieces, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.program_id(1)
    col = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=0.0)
    tl.store(part_ptr + row * pieces + piece, tl.sum(x, axis=0))


@triton.jit
def total_kernel(part_ptr, y_ptr, rows, pieces, ROWS: tl.constexpr, PIECES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    piece = tl.arange(0, PIECES)
    mask = (row < rows)[:, None] & (piece < pieces)[None, :]
    part = tl.load(part_ptr + row[:, None] * pieces + piece[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + row, tl.sum(part, axis=1), mask=row < rows)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        pieces = triton.cdiv(columns, 1024)
        key = (rows, pieces, x.device)
        if key not in self.kept:
            self.kept[key] = torch.empty(rows, pieces, device=x.device, dtype=torch.float32)
        parts = self.kept[key]
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        pieces_kernel[(rows, pieces)](x, parts, columns, pieces, BLOCK=1024)
        total_kernel[(triton.cdiv(rows, 64),)](
            parts, y, rows, pieces, ROWS=64, PIECES=triton.next_power_of_2(pieces)
        )
        return y
