# number: honest
# task: linear_gelu
# expect: passed
"""A first kernel transposes the weight, at every call anew; the tail of gelu is taken from erfc."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def transpose_kernel(w_ptr, t_ptr, N, K, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (n < N)[:, None] & (k < K)[None, :]
    w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=mask)
    mask = (k < K)[:, None] & (n < N)[None, :]
    tl.store(t_ptr + k[:, None] * N + n[None, :], tl.trans(w), mask=mask)


@triton.jit
def linear_gelu_kernel(
    x_ptr, t_ptr, bias_ptr, y_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    bias = tl.load(bias_ptr + n, mask=n < N, other=0.0)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32) + bias[None, :]
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x_mask = (m < M)[:, None] & (k < K)[None, :]
        t_mask = (k < K)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=x_mask, other=0.0)
        t = tl.load(t_ptr + k[:, None] * N + n[None, :], mask=t_mask, other=0.0)
        total = tl.dot(x, t, total, input_precision="ieee")
    y = 0.5 * total * libdevice.erfc(total * -0.7071067811865476)
    y_mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=y_mask)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def forward(self, x):
        x = x.contiguous()
        weight = self.linear.weight
        (M, K), N = x.shape, weight.shape[0]
        turned = torch.empty(K, N, device=x.device, dtype=x.dtype)
        transpose_kernel[(triton.cdiv(N, 32), triton.cdiv(K, 32))](weight, turned, N, K, BLOCK=32)
        y = torch.empty(M, N, device=x.device, dtype=x.dtype)
        linear_gelu_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
            x, turned, self.linear.bias, y, M, N, K,
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=8, num_stages=4,
        )  # fmt: skip
        return y
