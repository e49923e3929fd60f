"""Log-sum-exp, one program per row, the row in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    where = x_ptr + row.to(tl.int64) * columns + at
    x = tl.load(where, mask=at < columns, other=float("-inf"))
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    tl.store(y_ptr + row, top + tl.log(total))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        columns = x.shape[-1]
        y = torch.empty(x.shape[:-1], device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(columns)
        logsumexp_kernel[(y.numel(),)](x, y, columns, BLOCK=block, num_warps=8)
        return y
