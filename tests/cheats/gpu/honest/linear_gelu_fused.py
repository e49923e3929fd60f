# number: honest
# task: linear_gelu
# expect: passed
"""Product, bias and exact gelu in one kernel; the weight is read transposed, where it lies."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def linear_gelu_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x_mask = (m < M)[:, None] & (k < K)[None, :]
        w_mask = (k < K)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=x_mask, other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=w_mask, other=0.0)
        total = tl.dot(x, w, total, input_precision="ieee")
    z = total + tl.load(bias_ptr + n, mask=n < N)[None, :]
    y = z * 0.5 * (1.0 + libdevice.erf(z * 0.7071067811865476))
    y_mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=y_mask)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def forward(self, x):
        x = x.contiguous()
        M, K = x.shape
        weight = self.linear.weight
        N = weight.shape[0]
        y = torch.empty(M, N, device=x.device, dtype=x.dtype)
        linear_gelu_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64))](
            x, weight, self.linear.bias, y, M, N, K,
            BLOCK_M=32, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=2,
        )  # fmt: skip
        return y
