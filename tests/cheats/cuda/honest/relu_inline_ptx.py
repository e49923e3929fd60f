# number: honest
# task: relu
# expect: passed
"""PTX by hand, loads that leave the cache first."""

import torch
from kernelsmith.kernels import cuda

lib = cuda(
    """
extern "C" __global__ void relu_kernel(const float* x, float* y, int64_t n) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        float v;
        asm("ld.global.cs.f32 %0, [%1];" : "=f"(v) : "l"(x + i));
        y[i] = v < 0 ? 0 : v;
    }
}
""",
    flags=("-maxrregcount=32",),
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.relu_kernel[min(4096, (x.numel() + 255) // 256), 256](x, y, x.numel())
        return y
