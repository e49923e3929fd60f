"""The log of the summed exponentials of each row."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, -1)


def get_inputs(rows=1024, dim=1024):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "1024 rows of 1024",
            "inputs": {"rows": 1024, "dim": 1024},
        },
        {
            "name": "gpu: 8192 rows of 4096",
            "inputs": {"rows": 8192, "dim": 4096},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 37, "dim": 771},
            "held_out": True,
        },
    ]


CUDA = r'''
import torch
from kernelsmith.kernels import cuda_library

lib = cuda_library(r"""
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

#define WARP_SIZE 32

// Like torch, NaN wins.
__device__ float larger(float a, float b) { return a > b || a != a ? a : b; }

__device__ float warp_max(float v) {
    for (int offset = WARP_SIZE / 2; offset > 0; offset >>= 1)
        v = larger(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}

// Every thread gets the maximum over the block.
__device__ float block_max(float v) {
    __shared__ float most[32];
    int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE;
    v = warp_max(v);
    __syncthreads();
    if (lane == 0) most[warp] = v;
    __syncthreads();
    v = lane < blockDim.x / WARP_SIZE ? most[lane] : -INFINITY;
    return warp_max(v);
}

#define FULL_MASK 0xffffffff

__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(FULL_MASK, v, offset);
    return v;
}

// Every thread gets the sum over the block.
__device__ float block_sum(float v) {
    __shared__ float part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    v = warp_sum(v);
    __syncthreads();
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = lane < blockDim.x / 32 ? part[lane] : 0.0f;
    return warp_sum(v);
}

__global__ void __launch_bounds__(256) row_logsumexp_kernel(const float* __restrict__ x,
        float* __restrict__ y, int64_t dim) {
    const float* row = x + blockIdx.x * dim;
    float most = -INFINITY, sum = 0.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) most = larger(most, row[i]);
    most = block_max(most);
    float shift = isinf(most) ? 0.0f : most;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) sum += expf(row[i] - shift);
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = shift + logf(sum);
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t dim, cudaStream_t stream) {
    if (rows == 0) return;
    row_logsumexp_kernel<<<(unsigned)rows, 256, 0, stream>>>(x, y, dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        lib.launch(x, y, y.numel(), x.shape[-1])
        return y
'''
