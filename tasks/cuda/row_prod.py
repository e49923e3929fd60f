"""The product of each row."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return x.prod(-1)


def get_inputs(rows=1024, dim=1024):
    return [1 + 0.03 * torch.randn(rows, dim)]


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

#define FULL_MASK 0xffffffffu

__device__ float warp_prod(float v) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        v *= __shfl_xor_sync(FULL_MASK, v, offset);
    return v;
}

__global__ void __launch_bounds__(256) row_prod_kernel(const float* __restrict__ x,
        float* __restrict__ y, int64_t dim) {
    const float* row = x + blockIdx.x * dim;
    __shared__ float part[32];
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    float product = 1.0f;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x) product *= row[i];
    product = warp_prod(product);
    if (lane == 0) part[warp] = product;
    __syncthreads();
    if (warp == 0) {
        product = lane < blockDim.x / warpSize ? part[lane] : 1.0f;
        product = warp_prod(product);
        if (lane == 0) y[blockIdx.x] = product;
    }
}

extern "C" void launch(const float* x, float* y, int64_t rows, int64_t dim, cudaStream_t stream) {
    if (rows == 0) return;
    row_prod_kernel<<<(unsigned)rows, 256, 0, stream>>>(x, y, dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        lib.launch(x, y, y.numel(), x.shape[-1])
        return y
'''
