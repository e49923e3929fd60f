# number: honest
# task: matmul
# expect: passed
"""Partial products into a buffer kept between calls; a second kernel adds them in order."""

import torch
import triton
import triton.language as tl

SPLIT = 4


@triton.jit
def partial_kernel(
    a_ptr, b_ptr, part_ptr, M, N, K, share,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(2) * share
    last = tl.minimum(first + share, K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(first, last, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask = (m < M)[:, None] & (k < last)[None, :]
        b_mask = (k < last)[:, None] & (n < N)[None, :]
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    c_mask = (m < M)[:, None] & (n < N)[None, :]
    plane = part_ptr + tl.program_id(2).to(tl.int64) * M * N
    tl.store(plane + m[:, None] * N + n[None, :], total, mask=c_mask)


@triton.jit
def reduce_kernel(part_ptr, c_ptr, n, PLANES: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.zeros((BLOCK,), tl.float32)
    for plane in tl.static_range(PLANES):
        total += tl.load(part_ptr + plane * n + offsets, mask=mask)
    tl.store(c_ptr + offsets, total, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("parts", torch.empty(0), persistent=False)

    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        M, K = A.shape
        N = B.shape[1]
        if self.parts.numel() < SPLIT * M * N or self.parts.device != A.device:
            self.parts = torch.empty(SPLIT * M * N, device=A.device, dtype=torch.float32)
        C = torch.empty(M, N, device=A.device, dtype=A.dtype)
        partial_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64), SPLIT)](
            A, B, self.parts, M, N, K, triton.cdiv(K, SPLIT),
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=2,
        )  # fmt: skip
        reduce_kernel[(triton.cdiv(M * N, 1024),)](self.parts, C, M * N, PLANES=SPLIT, BLOCK=1024)
        return C
