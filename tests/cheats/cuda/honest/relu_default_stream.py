# number: honest
# task: relu
# expect: passed
"""Launches on the legacy default stream, as KernelBench's candidates do: timed without a graph."""

import torch
from kernelsmith.kernels import cuda_library

lib = cuda_library(r"""
#include <stdint.h>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0 ? 0 : x[i];
}
extern "C" void relu(const float* x, float* y, int64_t n) {
    relu_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.relu(x, y, x.numel())
        return y
