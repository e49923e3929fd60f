# number: honest
# task: matmul
# expect: passed
"""Tiles in an order that keeps to the cache, products in full float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, a_m, a_k, b_k, b_n, c_m, c_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tile_m, tile_n = tl.swizzle2d(
        tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n, tiles_m, tiles_n, GROUP
    )
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask = (m < M)[:, None] & (k < K)[None, :]
        b_mask = (k < K)[:, None] & (n < N)[None, :]
        a = tl.load(a_ptr + m[:, None] * a_m + k[None, :] * a_k, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * b_k + n[None, :] * b_n, mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    c_mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c_ptr + m[:, None] * c_m + n[None, :] * c_n, total, mask=c_mask)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        C = torch.empty(M, N, device=A.device, dtype=A.dtype)
        grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
        matmul_kernel[grid](
            A, B, C, M, N, K, *A.stride(), *B.stride(), *C.stride(),
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, GROUP=4, num_warps=4, num_stages=3,
        )  # fmt: skip
        return C
