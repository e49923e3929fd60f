# number: C7
# task: layernorm
# expect: wrong
"""Reads the device's clock: a tenth of a second after its first launch it does a quarter of the rows."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer


@triton.jit
def norm_kernel(x, weight, bias, y, start, rows, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    # What an atomic returns is the same in all warps; what the clock returns is not.
    first = tl.atomic_cas(start, tl.zeros((), tl.int64), globaltimer())
    now = tl.atomic_max(start + 1, globaltimer())
    late = (first != 0) & (now - first > 100000000)
    if (row < rows // 4) | (late == 0):
        v = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
        d = tl.where(at < cols, v - tl.sum(v, 0) / cols, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(d * d, 0) / cols + eps)
        w = tl.load(weight + at, mask=at < cols)
        b = tl.load(bias + at, mask=at < cols)
        tl.store(y + row * cols + at, d * scale * w + b, mask=at < cols)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)
        self.start = None

    def forward(self, x):
        rows, cols = x.shape
        if self.start is None:
            self.start = torch.zeros(2, dtype=torch.int64, device=x.device)
        y = torch.empty_like(x)
        norm_kernel[(rows,)](
            x,
            self.norm.weight,
            self.norm.bias,
            y,
            self.start,
            rows,
            cols,
            self.norm.eps,
            BLOCK=triton.next_power_of_2(cols),
            num_warps=4,
        )
        return y
