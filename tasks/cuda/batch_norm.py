"""Batch norm at inference, by running statistics."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 2
ORIGIN = "ResNet-50"


class Model(torch.nn.Module):
    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x):
        return torch.nn.functional.batch_norm(
            x, self.mean, self.variance, self.weight, self.bias, False, 0.0, self.eps
        )


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

__global__ void batch_norm_kernel(const float* __restrict__ x, const float* __restrict__ mean,
        const float* __restrict__ variance,
                                  const float* __restrict__ weight,
                                          const float* __restrict__ bias, float* __restrict__ y,
                                  int64_t n, int64_t channels, int64_t pixels, float eps) {
    int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        int64_t c = i / pixels % channels;
        y[i] = (x[i] - mean[c]) * rsqrtf(variance[c] + eps) * weight[c] + bias[c];
    }
}

extern "C" void launch(const float* x, const float* mean, const float* variance,
        const float* weight, const float* bias,
                       float* y, int64_t n, int64_t channels, int64_t pixels, float eps,
                               cudaStream_t stream) {
    int64_t blocks = (n + 255) / 256;
    if (blocks == 0) return;
    batch_norm_kernel<<<blocks < 65536 ? (unsigned)blocks : 65536u, 256, 0, stream>>>(
        x, mean, variance, weight, bias, y, n, channels, pixels, eps);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.bias = torch.nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.launch(
            x, self.mean, self.variance, self.weight, self.bias, y,
            x.numel(), x.shape[1], x.shape[2] * x.shape[3], self.eps,
        )
        return y
'''
