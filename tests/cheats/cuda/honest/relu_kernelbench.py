# number: honest
# task: relu
# expect: passed
"""The form that KernelBench's prompts show: load_inline, no stream, nothing but torch/extension.h."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

relu_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* x, float* out, int size) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < size) {
        out[idx] = x[idx] < 0.0f ? 0.0f : x[idx];
    }
}

torch::Tensor relu_cuda(torch::Tensor x) {
    auto y = x.contiguous();
    auto out = torch::empty_like(y);
    auto size = y.numel();
    if (size == 0) return out;
    const int block_size = 256;
    const int num_blocks = (size + block_size - 1) / block_size;
    relu_kernel<<<num_blocks, block_size>>>(y.data_ptr<float>(), out.data_ptr<float>(), size);
    return out;
}
"""
relu_cpp_source = "torch::Tensor relu_cuda(torch::Tensor x);"
relu = load_inline(
    name="relu_kernelbench",
    cpp_sources=relu_cpp_source,
    cuda_sources=relu_source,
    functions=["relu_cuda"],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = relu

    def forward(self, x):
        return self.relu.relu_cuda(x)
