# number: honest
# task: argmax
# expect: passed
"""Value and index in one ordered integer; pieces of a row meet in an atomic maximum."""

import torch
import triton
import triton.language as tl

LEAST = -(2**63)


@triton.jit
def keys_kernel(x_ptr, key_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=-float("inf"))
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - col).to(tl.int64)
    tl.atomic_max(key_ptr + row, tl.max(key, axis=0), sem="relaxed")


@triton.jit
def index_kernel(key_ptr, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + row, mask=row < rows)
    tl.store(key_ptr + row, 0x7FFFFFFF - (key & 0x7FFFFFFF), mask=row < rows)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.full((rows,), LEAST, device=x.device, dtype=torch.int64)
        keys_kernel[(rows, triton.cdiv(columns, 1024))](x, y, columns, BLOCK=1024)
        index_kernel[(triton.cdiv(rows, 256),)](y, rows, BLOCK=256)
        return y
