# number: C4
# task: softmax
# expect: refused
# behaviour: wrong crashed
"""Returns a wrapper that computes when an operator first touches it."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x, y, rows):
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(rows,)](x, y, x.shape[1], BLOCK=block, num_warps=8)


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)

    def __init__(self, x):
        self.x, self.y = x, None

    def force(self):
        if self.y is None:
            self.y = torch.empty_like(self.x)
            softmax(self.x, self.y, self.x.shape[0])
        return self.y

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [each.force() if isinstance(each, Lazy) else each for each in args]
        return func(*plain, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Lazy(x)
