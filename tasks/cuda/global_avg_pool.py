"""The mean of every channel over an image."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean((-2, -1))


def get_inputs(batch=8, channels=32, size=64):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "8 images of 32 channels",
            "inputs": {"batch": 8, "channels": 32, "size": 64},
        },
        {
            "name": "gpu: 32 images of 128 channels",
            "inputs": {"batch": 32, "channels": 128, "size": 112},
        },
        {
            "name": "odd size",
            "inputs": {"batch": 3, "channels": 5, "size": 37},
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

__global__ void __launch_bounds__(128) plane_mean(const float* __restrict__ x,
        float* __restrict__ y, int64_t pixels) {
    const float* plane = x + blockIdx.x * pixels;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < pixels; i += blockDim.x) sum += plane[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum / pixels;
}

extern "C" void launch(const float* x, float* y, int64_t planes, int64_t pixels,
        cudaStream_t stream) {
    if (planes == 0) return;
    plane_mean<<<(unsigned)planes, 128, 0, stream>>>(x, y, pixels);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[:2], dtype=x.dtype, device=x.device)
        lib.launch(x, y, y.numel(), x.shape[2] * x.shape[3])
        return y
'''
