"""Group norm with weight and bias."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def __init__(self, channels, groups=4, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return torch.nn.functional.group_norm(x, self.groups, self.weight, self.bias, self.eps)


def get_inputs(batch=8, channels=32, size=32):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=32):
    return [channels]


def get_workloads():
    return [
        {
            "name": "8 images of 32 channels",
            "inputs": {"batch": 8, "channels": 32, "size": 32},
            "init": {"channels": 32},
        },
        {
            "name": "gpu: 32 images of 128 channels",
            "inputs": {"batch": 32, "channels": 128, "size": 56},
            "init": {"channels": 128},
        },
        {
            "name": "odd size",
            "inputs": {"batch": 3, "channels": 8, "size": 29},
            "init": {"channels": 8},
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

// One block per image and group; a group is `each` channels of `pixels` values.
__global__ void __launch_bounds__(512) group_norm_kernel(const float* __restrict__ x,
        const float* __restrict__ weight,
                                                         const float* __restrict__ bias,
                                                                 float* __restrict__ y,
                                                         int groups, int64_t each,
                                                                 int64_t pixels, float eps) {
    int64_t n = each * pixels;
    const float* from = x + blockIdx.x * n;
    float* out = y + blockIdx.x * n;
    int64_t first = blockIdx.x % groups * each;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += from[i];
    float mean = block_sum(sum) / n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        squares += (from[i] - mean) * (from[i] - mean);
    float scale = rsqrtf(block_sum(squares) / n + eps);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t channel = first + i / pixels;
        out[i] = (from[i] - mean) * scale * weight[channel] + bias[channel];
    }
}

extern "C" void launch(const float* x, const float* weight, const float* bias, float* y,
        int64_t images, int groups,
                       int64_t each, int64_t pixels, float eps, cudaStream_t stream) {
    if (images == 0) return;
    group_norm_kernel<<<(unsigned)(images * groups), 512, 0, stream>>>(x, weight, bias, y,
            groups, each, pixels, eps);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, channels, groups=4, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        images, channels, pixels = x.shape[0], x.shape[1], x.shape[2] * x.shape[3]
        lib.launch(
            x, self.weight, self.bias, y, images, self.groups, channels // self.groups, pixels,
                    self.eps
        )
        return y
'''
