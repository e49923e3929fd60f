# number: honest
# task: softmax
# expect: passed
"""A row in 64 KiB of dynamic shared memory, which has to be asked for."""

import torch
from kernelsmith.kernels import cuda

lib = cuda("""
__device__ float across(float v, bool largest) {
    for (int o = 16; o; o /= 2) {
        float other = __shfl_xor_sync(0xffffffff, v, o);
        v = largest ? (other > v || other != other ? other : v) : v + other;
    }
    return v;
}
__device__ float over_block(float v, bool largest) {
    __shared__ float part[32];
    v = across(v, largest);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : (largest ? -INFINITY : 0.0f);
    return across(v, largest);
}
extern "C" __global__ void __launch_bounds__(512) softmax_rows(const float* x, float* y, int columns) {
    extern __shared__ float row[];
    x += (int64_t)blockIdx.x * columns;
    y += (int64_t)blockIdx.x * columns;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        row[i] = x[i];
        most = row[i] > most || row[i] != row[i] ? row[i] : most;
    }
    most = over_block(most, true);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] = expf(row[i] - most);
    sum = over_block(sum, false);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = row[i] / sum;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        lib.softmax_rows[x.numel() // max(columns, 1), 512, max(65536, 4 * columns)](x, y, columns)
        return y
