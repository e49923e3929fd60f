"""Leaky ReLU: negative values are scaled by 0.01."""

import torch

FAMILY = "activation"
DIFFICULTY = 1
ORIGIN = "PyTorch"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.leaky_relu(x, 0.01)


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

__global__ void leaky_relu_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        float v = x[i];
        y[i] = v > 0.0f ? v : 0.01f * v;
    }
}

extern "C" void launch(const float* x, float* y, int64_t n, cudaStream_t stream) {
    const int threads = 256;
    int64_t blocks = (n + threads - 1) / threads;
    if (blocks == 0) return;
    leaky_relu_kernel<<<blocks < 65536 ? (unsigned)blocks : 65536u, threads, 0, stream>>>(x, y,
            n);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.launch(x, y, x.numel())
        return y
'''
