# number: A11
# task: relu
# expect: wrong cheated crashed
"""Zeroes what lies behind its input, where the next one waits."""

import torch
from kernelsmith.kernels import cuda

lib = cuda("""
extern "C" __global__ void relu_kernel(float* x, float* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = x[i] < 0 ? 0 : x[i]; x[n + i] = 0; }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.relu_kernel[(x.numel() + 255) // 256, 256](x, y, x.numel())
        return y
