# number: honest
# task: relu
# expect: passed
"""As KernelBench's candidates are written: a kernel and a function of torch's, by load_inline."""

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
    int size = y.numel();
    const int block_size = 256;
    if (size == 0) return out;
    relu_kernel<<<(size + block_size - 1) / block_size, block_size, 0, at::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), out.data_ptr<float>(), size);
    return out;
}
"""
relu_source = relu_source.replace(
    "#include <cuda_runtime.h>", "#include <ATen/cuda/CUDAContext.h>\n#include <cuda_runtime.h>"
)
relu = load_inline(
    name="relu",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=relu_source,
    functions=["relu_cuda"],
    extra_cuda_cflags=["-O3", "-gencode", "arch=compute_80,code=sm_80"],
    verbose=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu.relu_cuda(x)
