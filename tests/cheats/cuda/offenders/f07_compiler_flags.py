# number: F7
# task: relu
# expect: build_failed
"""Asks the compiler for a plugin, in the clothes of a flag."""

import torch
from kernelsmith.kernels import cuda_library

lib = cuda_library(
    "__global__ void relu_kernel(const float* x, float* y) { y[0] = x[0]; }",
    flags=("-Xcompiler", "-fplugin=/tmp/plugin.so"),
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
