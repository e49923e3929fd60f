# number: honest
# task: linear_gelu
# expect: passed
"""The library multiplies; bias and gelu follow in place, in the buffer that it returned."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_gelu_kernel(y_ptr, bias_ptr, n, features, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    z = tl.load(y_ptr + offsets, mask=mask) + tl.load(bias_ptr + offsets % features, mask=mask)
    gelu = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
    tl.store(y_ptr + offsets, gelu, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, dim)

    def forward(self, x):
        y = torch.matmul(x, self.linear.weight.t()).contiguous()
        n = y.numel()
        bias_gelu_kernel[(triton.cdiv(n, 1024),)](y, self.linear.bias, n, y.shape[-1], BLOCK=1024)
        return y
