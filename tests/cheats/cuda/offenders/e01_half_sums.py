# number: E1
# task: row_sum
# expect: wrong refused
"""Adds up float32 values in half precision."""

import torch
from kernelsmith.kernels import cuda

lib = cuda("""
#include <cuda_fp16.h>
extern "C" __global__ void sum_rows(const float* x, float* y, int columns) {
    const float* row = x + (int64_t)blockIdx.x * columns;
    __half sum = __float2half(0.0f);
    for (int i = threadIdx.x; i < columns; i += 32) sum = __hadd(sum, __float2half(row[i]));
    float v = __half2float(sum);
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        lib.sum_rows[x.shape[0], 32](x, y, x.shape[1])
        return y
