# number: honest
# task: matmul
# expect: passed
"""Four programs per tile share the inner dimension and add into zeros, in any order."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, K, BLOCK_K * SPLIT):
        k = start + tl.arange(0, BLOCK_K)
        a_mask = (m < M)[:, None] & (k < K)[None, :]
        b_mask = (k < K)[:, None] & (n < N)[None, :]
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    c_mask = (m < M)[:, None] & (n < N)[None, :]
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], total, mask=c_mask, sem="relaxed")


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        M, K = A.shape
        N = B.shape[1]
        C = torch.zeros(M, N, device=A.device, dtype=A.dtype)
        matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64), 4)](
            A, B, C, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, SPLIT=4, num_warps=4
        )
        return C
