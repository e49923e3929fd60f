# number: C8
# task: relu
# expect: wrong cheated
"""Its host code asks whether a graph is being captured, and then launches nothing."""

import torch
from kernelsmith.kernels import cuda_library

lib = cuda_library(r"""
#include <stdint.h>
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0 ? 0 : x[i];
}
extern "C" void relu(const float* x, float* y, int64_t n, cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    cudaStreamIsCapturing(stream, &status);
    if (status == cudaStreamCaptureStatusNone) relu_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
    else relu_kernel<<<1, 32, 0, stream>>>(x, y, 1);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.relu(x, y, x.numel())
        return y
