# number: honest
# task: matmul
# expect: passed
"""The lower half on a second stream, forked and joined by events."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask = (m < M)[:, None] & (k < K)[None, :]
        b_mask = (k < K)[:, None] & (n < N)[None, :]
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    c_mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], total, mask=c_mask)


def matmul(A, B, C):
    M, K = A.shape
    N = B.shape[1]
    matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        A, B, C, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=8, num_stages=3
    )


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.side = None

    def forward(self, A, B):
        if self.side is None:
            self.side = torch.cuda.Stream(A.device)
        A, B = A.contiguous(), B.contiguous()
        C = torch.empty(A.shape[0], B.shape[1], device=A.device, dtype=A.dtype)
        half = A.shape[0] // 2
        forked, joined = torch.cuda.Event(), torch.cuda.Event()
        here = torch.cuda.current_stream(A.device)
        forked.record(here)
        self.side.wait_event(forked)
        with torch.cuda.stream(self.side):
            matmul(A[half:], B, C[half:])
            joined.record(self.side)
        matmul(A[:half], B, C[:half])
        here.wait_event(joined)
        return C
