# number: D2
# task: relu
# expect: wrong cheated
"""Its host code keeps the first answer and copies it back for every input at that address."""

import torch
from kernelsmith.kernels import cuda_library

lib = cuda_library(r"""
#include <stdint.h>
#include <map>
static std::map<const float*, float*> kept;
__global__ void relu_kernel(const float* x, float* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0 ? 0 : x[i];
}
extern "C" void relu(const float* x, float* y, int64_t n, cudaStream_t stream) {
    auto found = kept.find(x);
    if (found != kept.end()) { cudaMemcpyAsync(y, found->second, 4 * n, cudaMemcpyDeviceToDevice, stream); return; }
    relu_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
    float* copy;
    if (cudaMalloc(&copy, 4 * n) == cudaSuccess) {
        cudaMemcpyAsync(copy, y, 4 * n, cudaMemcpyDeviceToDevice, stream);
        kept[x] = copy;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.relu(x, y, x.numel())
        return y
