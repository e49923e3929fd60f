"""Where the smallest value of each row is."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return x.argmin(-1)


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

#define FULL_MASK 0xffffffff

// Whether (a, i) comes before (b, j): larger, NaN first, the lower index among equals.
__device__ bool better(float a, int64_t i, float b, int64_t j) {
    if (a != a || b != b) return a != a && (b == b || i < j);
    return a > b || (a == b && i < j);
}

__device__ void warp_best(float& v, int64_t& at) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        float other = __shfl_down_sync(FULL_MASK, v, offset);
        int64_t place = __shfl_down_sync(FULL_MASK, at, offset);
        if (better(other, place, v, at)) { v = other; at = place; }
    }
}

__global__ void __launch_bounds__(256) row_argmin_kernel(const float* __restrict__ x,
        int64_t* __restrict__ y, int64_t dim) {
    const float* row = x + blockIdx.x * dim;
    __shared__ float values[32];
    __shared__ int64_t places[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float best = -INFINITY;
    int64_t at = dim;
    for (int64_t i = threadIdx.x; i < dim; i += blockDim.x)
        if (better(-row[i], i, best, at)) { best = -row[i]; at = i; }
    warp_best(best, at);
    if (lane == 0) { values[warp] = best; places[warp] = at; }
    __syncthreads();
    if (warp == 0) {
        best = lane < blockDim.x / 32 ? values[lane] : -INFINITY;
        at = lane < blockDim.x / 32 ? places[lane] : dim;
        warp_best(best, at);
        if (lane == 0) y[blockIdx.x] = at;
    }
}

extern "C" void launch(const float* x, int64_t* y, int64_t rows, int64_t dim,
        cudaStream_t stream) {
    if (rows == 0) return;
    row_argmin_kernel<<<(unsigned)rows, 256, 0, stream>>>(x, y, dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
        lib.launch(x, y, y.numel(), x.shape[-1])
        return y
'''
