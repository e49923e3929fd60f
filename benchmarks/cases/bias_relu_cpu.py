"""Bias and ReLU in one go over the tensor."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(
    r"""
extern "C" void bias_relu(const float* x, const float* bias, float* y, int64_t rows, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t i = row * n + j;
      y[i] = std::max(x[i] + bias[j], 0.0f);
    }
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows = x.numel() // x.shape[-1] if x.numel() else 0
        lib.bias_relu(x, self.bias, y, rows, x.shape[-1])
        return y
