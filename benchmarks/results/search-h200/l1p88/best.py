# Found by Kernel-Smith for the task '88_MinGPTNewGelu'.
# speed-up:  8.875x [8.860, 8.894] over eager, 48 samples a side
# confirmed: again at the end, on fresh inputs
# device:    NVIDIA H200 (cuda)
# torch:     2.11.0
# triton:    3.6.0
# driver:    580.159.04
# python:    3.12.3
# kernel:    6.18.44-fc-v445-gpu
# judge:     0.1.0/2
# labels:    robust
# run:       d6f394fa, begun 2026-11-15T16:06:29+00:00
# candidate: ca94dc9fb5aa, step 0

"""88_MinGPTNewGelu: written by kernelsmith's rules.

One fused kernel, one flat stretch.
"""
# kernelsmith rules: flat block=1024 warps=4 programs=0 evict=none
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

# EVOLVE-BLOCK-START
@triton.jit
def tanh(x):
    z = x * x  # odd polynomial near 0, where the other form cancels
    p = 2.1475370e-3 * z - 8.1826737e-3
    p = ((p * z + 2.1702968e-2) * z - 5.3947203e-2) * z + 1.3333210e-1
    near = x + x * z * (p * z - 3.3333331e-1)
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0, -far, far))


@triton.jit
def flat(x, out, rows, dim, BLOCK: tl.constexpr):
    size = tl.cast(rows, tl.int64) * dim
    first = tl.program_id(0).to(tl.int64)
    for tile in range(first, tl.cdiv(size, BLOCK), tl.num_programs(0)):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        inside = at < size
        v0 = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        v2 = 0.5 * v0
        v3 = v0 * v0
        v4 = v3 * v0
        v6 = 0.044715 * v4
        v7 = v0 + v6
        v9 = 0.7978845608028654 * v7
        v10 = tanh(v9)
        v12 = 1.0 + v10
        v13 = v2 * v12
        tl.store(out + at, v13, mask=inside)
# EVOLVE-BLOCK-END


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        dim = x.shape[-1]
        rows = x.numel() // dim if dim else 0
        out = torch.empty_like(x)
        if not out.numel():
            return out
        tiles = triton.cdiv(rows * dim, 1024)
        programs = max(1, tiles)
        flat[(programs,)](x, out, rows, dim, BLOCK=1024, num_warps=4)
        return out
