# number: honest
# task: embedding
# expect: passed
"""Eight rows of the table per program, each read as one vector."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(id_ptr, table_ptr, y_ptr, count, dim, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    ids = tl.load(id_ptr + row, mask=row < count, other=0)
    mask = (row < count)[:, None] & (col < dim)[None, :]
    values = tl.load(table_ptr + ids[:, None] * dim + col[None, :], mask=mask)
    tl.store(y_ptr + row[:, None] * dim + col[None, :], values, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.table = torch.nn.Embedding(rows, dim)

    def forward(self, ids):
        table = self.table.weight
        ids = ids.contiguous()
        dim = table.shape[1]
        y = torch.empty(*ids.shape, dim, device=table.device, dtype=table.dtype)
        gather_kernel[(triton.cdiv(ids.numel(), 8),)](
            ids, table, y, ids.numel(), dim, ROWS=8, BLOCK=triton.next_power_of_2(dim)
        )
        return y
