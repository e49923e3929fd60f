# number: E7
# task: softmax
# expect: wrong
"""Leaves out the subtraction of the maximum: fine until an input is larger than 88."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""

extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float sum = 0, top = 0;
    (void)top;
    for (int64_t j = 0; j < n; j++) sum += y[i * n + j] = std::exp(x[i * n + j]);
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
