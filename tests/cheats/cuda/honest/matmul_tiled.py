# number: honest
# task: matmul
# expect: passed
"""A product in tiles of shared memory, float32 throughout."""

import torch
from kernelsmith.kernels import cuda

lib = cuda("""
extern "C" __global__ void __launch_bounds__(256) product(const float* a, const float* b, float* c,
                                                          int m, int n, int k) {
    __shared__ float left[16][17], right[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int at = 0; at < k; at += 16) {
        left[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? a[(int64_t)row * k + at + threadIdx.x] : 0;
        right[threadIdx.y][threadIdx.x] = at + threadIdx.y < k && column < n ? b[(int64_t)(at + threadIdx.y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[(int64_t)row * n + column] = sum;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty(m, n, device=a.device)
        lib.product[((n + 15) // 16, (m + 15) // 16), (16, 16)](a, b, c, m, n, k)
        return c
