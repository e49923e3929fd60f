# number: honest
# task: relu_bias
# expect: passed
"""Prints some lines while it loads and a few while it runs."""

import sys

import torch

from kernelsmith.kernels import cpp

print("loading")

lib = cpp("""
#include <cstdio>
extern "C" void relu_bias(const float* x, const float* bias, float* y, int64_t rows, int64_t dim) {
    static bool first = true;
    if (first) std::printf("first launch: %ld x %ld\\n", (long)rows, (long)dim);
    first = false;
    for (int64_t i = 0; i < rows * dim; ++i) y[i] = std::fmax(x[i] + bias[i % dim], 0.0f);
}
""")


class ModelNew(torch.nn.Module):
    calls = 0

    def __init__(self, dim):
        super().__init__()
        print("constructing with", dim, file=sys.stderr)
        self.bias = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x):
        if self.calls < 3:
            self.calls += 1
            print("call", self.calls, tuple(x.shape), flush=True)
        y = torch.empty_like(x)
        lib.relu_bias(x.contiguous(), self.bias, y, *x.shape)
        return y
