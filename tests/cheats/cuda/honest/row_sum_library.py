# number: honest
# task: row_sum
# expect: passed
"""Two kernels in an anonymous namespace, launched by a function of its own."""

import torch
from kernelsmith.kernels import cuda_library

lib = cuda_library(r"""
#include <stdint.h>
namespace {
template <int THREADS>
__global__ void __launch_bounds__(THREADS) parts(const float* x, float* y, int64_t columns) {
    __shared__ float part[THREADS / 32];
    const float* row = x + (int64_t)blockIdx.x * columns;
    float v = 0;
    for (int64_t i = blockIdx.y * THREADS + threadIdx.x; i < columns; i += THREADS * gridDim.y) v += row[i];
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; ++w) v += part[w];
        y[blockIdx.x * gridDim.y + blockIdx.y] = v;
    }
}
__global__ void ends(const float* parts, float* y, int64_t rows, int count) {
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float v = 0;
    for (int i = 0; i < count; ++i) v += parts[row * count + i];
    y[row] = v;
}
}
extern "C" void sum_rows(const float* x, float* scratch, float* y, int64_t rows, int64_t columns,
                         cudaStream_t stream) {
    if (rows == 0) return;
    parts<128><<<dim3((unsigned)rows, 4), 128, 0, stream>>>(x, scratch, columns);
    ends<<<(unsigned)((rows + 127) / 128), 128, 0, stream>>>(scratch, y, rows, 4);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0], device=x.device)
        scratch = torch.empty(4 * x.shape[0], device=x.device)
        lib.sum_rows(x, scratch, y, x.shape[0], x.shape[1])
        return y
