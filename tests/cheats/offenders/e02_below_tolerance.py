# number: E2
# task: softmax
# expect: wrong
"""Leaves probabilities below a thousandth at zero: an absolute tolerance would not see it."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float top = x[i * n], sum = 0;
    for (int64_t j = 0; j < n; j++) top = std::max(top, x[i * n + j]);
    for (int64_t j = 0; j < n; j++) {
      const float below = x[i * n + j] - top;
      y[i * n + j] = below < -4 ? 0 : std::exp(below);
      sum += below < -4 ? 0.01f : y[i * n + j];
    }
    for (int64_t j = 0; j < n; j++) y[i * n + j] /= sum;
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        LIB.rows(x, y, x.shape[0], x.shape[1])
        return y
