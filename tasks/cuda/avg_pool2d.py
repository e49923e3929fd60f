"""The mean of each two by two pixels."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.avg_pool2d(x, 2)


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

__global__ void avg_pool2d_kernel(const float* __restrict__ x, float* __restrict__ y,
        int64_t planes, int height, int width) {
    int rows = height / 2, columns = width / 2;
    int64_t n = planes * rows * columns, stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        int column = i % columns, row = i / columns % rows;
        const float* corner = x + (i / columns / rows * height + 2 * row) * width + 2 * column;
        float found = 0.0f;
        #pragma unroll
        for (int dy = 0; dy < 2; ++dy)
            #pragma unroll
            for (int dx = 0; dx < 2; ++dx) found = found + corner[dy * width + dx];
        y[i] = 0.25f * found;
    }
}

extern "C" void launch(const float* x, float* y, int64_t planes, int height, int width,
        cudaStream_t stream) {
    int64_t n = planes * (height / 2) * (width / 2), blocks = (n + 255) / 256;
    if (blocks == 0) return;
    avg_pool2d_kernel<<<blocks < 65536 ? (unsigned)blocks : 65536u, 256, 0, stream>>>(x, y,
            planes, height, width);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        planes, height, width = x.shape[0] * x.shape[1], x.shape[2], x.shape[3]
        y = torch.empty(*x.shape[:2], height // 2, width // 2, dtype=x.dtype, device=x.device)
        lib.launch(x, y, planes, height, width)
        return y
'''
