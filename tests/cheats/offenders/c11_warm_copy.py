# number: C11
# task: relu_bias
# expect: wrong
"""Keeps the inputs of the first calls in a warm copy per address and never reads them again."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <unordered_map>
#include <vector>
static std::unordered_map<const float*, std::vector<float>> warm;
extern "C" void run(const float* x, const float* bias, float* y, int64_t m, int64_t n) {
  auto& copy = warm[x];
  if (copy.empty()) copy.assign(x, x + m * n);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) y[i * n + j] = std::max(copy[i * n + j] + bias[j], 0.0f);
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        y = torch.empty_like(x)
        LIB.run(x, self.bias, y, x.shape[0], x.shape[1])
        return y
