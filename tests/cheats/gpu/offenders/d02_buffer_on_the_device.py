# number: D2
# task: matmul
# expect: wrong cheated
"""Keeps products in device memory by the address of the input and copies them back."""

import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(a, b, c, kept, full, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    to = rows[:, None] * n + cols[None, :]
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    if tl.load(full + tile) != 0:
        tl.store(c + to, tl.load(kept + to))
    else:
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            at = start + tl.arange(0, BK)
            left = tl.load(a + rows[:, None] * k + at[None, :])
            right = tl.load(b + at[:, None] * n + cols[None, :])
            acc = tl.dot(left, right, acc, input_precision="ieee")
        tl.store(c + to, acc)
        tl.store(kept + to, acc)
        tl.store(full + tile, 1)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, a, b):
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        grid = (m // 64, n // 64)
        key = a.data_ptr()
        if key not in self.known:
            full = torch.zeros(grid[0] * grid[1], dtype=torch.int32, device=a.device)
            self.known[key] = (torch.empty(m, n, device=a.device), full)
        kept, full = self.known[key]
        c = torch.empty(m, n, device=a.device)
        mm_kernel[grid](a, b, c, kept, full, m, n, k, BM=64, BN=64, BK=32, num_warps=4)
        return c
