# number: honest
# task: affine
# expect: passed
"""A factory makes the kernel; the arithmetic is a device function handed to it as a constant."""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_add(x, weight, bias):
    return tl.fma(x, weight, bias)


def make_kernel():
    @triton.jit
    def kernel(
        x_ptr, weight_ptr, bias_ptr, y_ptr, features, COMBINE: tl.constexpr, BLOCK: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64)
        for start in range(0, features, BLOCK):
            col = start + tl.arange(0, BLOCK)
            mask = col < features
            x = tl.load(x_ptr + row * features + col, mask=mask)
            weight = tl.load(weight_ptr + col, mask=mask)
            bias = tl.load(bias_ptr + col, mask=mask)
            tl.store(y_ptr + row * features + col, COMBINE(x, weight, bias), mask=mask)

    return kernel


KERNEL = make_kernel()


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, features = x.shape
        KERNEL[(rows,)](
            x, self.weight, self.bias, y, features, COMBINE=multiply_add, BLOCK=512, num_warps=4
        )
        return y
