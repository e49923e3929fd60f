"""RMSNorm in Triton: one program a row, which it reads once and keeps in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, y, dim, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < dim
    values = tl.load(x + row * dim + at, mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / dim + eps)
    weights = tl.load(weight + at, mask=inside, other=0.0)
    tl.store(y + row * dim + at, values * scale * weights, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        dim = x.shape[-1]
        if x.numel():
            block = triton.next_power_of_2(dim)
            rms_norm[(x.numel() // dim,)](x, self.weight, y, dim, self.eps, BLOCK=block)
        return y
