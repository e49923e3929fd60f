"""How many values of each row are above zero."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return (x > 0).sum(-1)


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


__global__ void __launch_bounds__(256) count_positive_kernel(const float* __restrict__ x,
        int64_t* __restrict__ y, int64_t dim) {
    const float* row = x + blockIdx.x * dim;
    __shared__ int counts[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = 0;
    for (int64_t base = 0; base < dim; base += blockDim.x) {
        int64_t i = base + threadIdx.x;
        count += __popc(__ballot_sync(0xffffffff, i < dim && row[i] > 0.0f));
    }
    if (lane == 0) counts[warp] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
        int64_t total = 0;
        for (int w = 0; w < (blockDim.x + 31) / 32; ++w) total += counts[w];
        y[blockIdx.x] = total;
    }
}

extern "C" void launch(const float* x, int64_t* y, int64_t rows, int64_t dim,
        cudaStream_t stream) {
    if (rows == 0) return;
    count_positive_kernel<<<(unsigned)rows, 256, 0, stream>>>(x, y, dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
        lib.launch(x, y, y.numel(), x.shape[-1])
        return y
'''
