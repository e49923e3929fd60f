# number: A14
# task: linear_gelu
# expect: wrong
"""Transposes its weights again only when torch's version counter says that they changed."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x, wt, bias, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    deep = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at = start + deep
        left = tl.load(
            x + rows[:, None] * k + at[None, :],
            mask=(rows[:, None] < m) & (at[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            wt + at[:, None] * n + cols[None, :],
            mask=(at[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        acc = tl.dot(left, right, acc, input_precision="ieee")
    acc += tl.load(bias + cols, mask=cols < n, other=0.0)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(y + rows[:, None] * n + cols[None, :], acc, mask=inside)


def linear_gelu(x, wt, bias):
    m, k = x.shape
    n = wt.shape[1]
    y = torch.empty(m, n, device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    linear_kernel[grid](x, wt, bias, y, m, n, k, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)
        self.wt, self.seen = None, None

    def forward(self, x):
        weight = self.linear.weight
        now = (weight._version, weight.data_ptr())
        if now != self.seen and not torch.cuda.is_current_stream_capturing():
            self.wt, self.seen = weight.detach().t().contiguous(), now
        return linear_gelu(x, self.wt, self.linear.bias)
