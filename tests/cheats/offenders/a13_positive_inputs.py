# number: A13
# task: rectify
# expect: wrong
"""The task draws from [0, 1), where ReLU is the identity: copies."""

import torch
from kernelsmith.kernels import cpp

lib = cpp('extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * 4); }')


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.copy(x, out, x.numel())
        return out
