# number: honest
# task: matmul
# expect: passed
"""A persistent kernel: one program per multiprocessor works off tiles through block pointers."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        m = (tile // tiles_n) * BLOCK_M
        n = (tile % tiles_n) * BLOCK_N
        a_at = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (m, 0), (BLOCK_M, BLOCK_K), (1, 0))
        b_at = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, n), (BLOCK_K, BLOCK_N), (1, 0))
        c_at = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (m, n), (BLOCK_M, BLOCK_N), (1, 0))
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for _ in range(0, K, BLOCK_K):
            a = tl.load(a_at, boundary_check=(0, 1), padding_option="zero")
            b = tl.load(b_at, boundary_check=(0, 1), padding_option="zero")
            total = tl.dot(a, b, total, input_precision="ieee")
            a_at = tl.advance(a_at, (0, BLOCK_K))
            b_at = tl.advance(b_at, (BLOCK_K, 0))
        tl.store(c_at, total, boundary_check=(0, 1))


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        M, K = A.shape
        N = B.shape[1]
        C = torch.empty(M, N, device=A.device, dtype=A.dtype)
        programs = torch.cuda.get_device_properties(A.device).multi_processor_count
        matmul_kernel[(programs,)](
            A, B, C, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=4
        )
        return C
