# number: honest
# task: matmul
# expect: passed
"""Tiles come and go through tensor descriptors; what they cannot describe is padded first."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32


@triton.jit
def matmul_kernel(
    a_desc, b_desc, c_desc, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([m, k])
        b = b_desc.load([k, n])
        total = tl.dot(a, b, total, input_precision="ieee")
    c_desc.store([m, n], total)


def describable(tensor):
    """Rows that start at multiples of 16 bytes, as the hardware wants them."""
    tensor = tensor.contiguous()
    if tensor.shape[1] % 4 == 0 and tensor.data_ptr() % 16 == 0:
        return tensor
    rows, columns = tensor.shape
    padded = tensor.new_empty(rows, triton.cdiv(columns, 4) * 4)[:, :columns]
    return padded.copy_(tensor)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        N = B.shape[1]
        A, B = describable(A), describable(B)
        C = torch.empty(M, triton.cdiv(N, 4) * 4, device=A.device, dtype=A.dtype)[:, :N]
        if M * N * K == 0:
            return C.zero_()
        matmul_kernel[(triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))](
            TensorDescriptor.from_tensor(A, [BLOCK_M, BLOCK_K]),
            TensorDescriptor.from_tensor(B, [BLOCK_K, BLOCK_N]),
            TensorDescriptor.from_tensor(C, [BLOCK_M, BLOCK_N]),
            K, BLOCK_M, BLOCK_N, BLOCK_K, num_warps=4, num_stages=3,
        )  # fmt: skip
        return C.contiguous()
