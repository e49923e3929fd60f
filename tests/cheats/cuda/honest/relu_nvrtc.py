# number: honest
# task: relu
# expect: passed
"""A kernel by NVRTC, four values a thread."""

import torch
from kernelsmith.kernels import cuda

lib = cuda("""
extern "C" __global__ void __launch_bounds__(256) relu4(const float4* x, float4* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = x[i];
        y[i] = {v.x < 0 ? 0 : v.x, v.y < 0 ? 0 : v.y, v.z < 0 ? 0 : v.z, v.w < 0 ? 0 : v.w};
    }
}
extern "C" __global__ void relu1(const float* x, float* y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0 ? 0 : x[i];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n % 4 == 0 and x.data_ptr() % 16 == 0:
            lib.relu4[(n // 4 + 255) // 256, 256](x, y, n // 4)
        else:
            lib.relu1[(n + 255) // 256, 256](x, y, n)
        return y
