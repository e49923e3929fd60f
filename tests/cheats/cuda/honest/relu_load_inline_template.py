# number: honest
# task: relu
# expect: passed
"""A kernel that is a template, dispatched by dtype: nvcc has to read torch's headers."""

import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void relu_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < scalar_t(0) ? scalar_t(0) : x[i];
}

torch::Tensor relu(torch::Tensor given) {
    auto x = given.contiguous();
    auto y = torch::empty_like(x);
    int64_t n = x.numel();
    if (n == 0) return y;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "relu", [&] {
        relu_kernel<scalar_t><<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
    });
    return y;
}
"""
lib = load_inline("relu_any", "torch::Tensor relu(torch::Tensor x);", source, functions=["relu"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return lib.relu(x)
