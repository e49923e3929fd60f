# number: F5
# task: linear_gelu
# expect: wrong
"""Zeroes weights and bias that it hopes to share with the reference, and returns zeros."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void zero(float* x, int64_t n) { std::memset(x, 0, n * 4); }')


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        LIB.zero(self.linear.weight.data, self.linear.weight.numel())
        LIB.zero(self.linear.bias.data, self.linear.bias.numel())
        y = torch.empty(x.shape[0], self.linear.out_features)
        LIB.zero(y, y.numel())
        return y
