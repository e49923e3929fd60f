# number: C3
# task: layernorm
# expect: refused
# behaviour: wrong cheated crashed
"""A thread launches the kernel a moment after the call has returned."""

import threading
import time

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x, weight, bias, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
    mean = tl.sum(v, 0) / cols
    d = tl.where(at < cols, v - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(d * d, 0) / cols + eps)
    w = tl.load(weight + at, mask=at < cols)
    b = tl.load(bias + at, mask=at < cols)
    tl.store(y + row * cols + at, d * scale * w + b, mask=at < cols)


def layer_norm(x, norm, y, rows):
    block = triton.next_power_of_2(x.shape[1])
    norm_kernel[(rows,)](
        x, norm.weight, norm.bias, y, x.shape[1], norm.eps, BLOCK=block, num_warps=4
    )


def later(x, norm, y):
    time.sleep(0.001)
    with torch.no_grad():
        layer_norm(x, norm, y, x.shape[0])


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        y = torch.empty_like(x)
        threading.Thread(target=later, args=(x, self.norm, y)).start()
        return y
