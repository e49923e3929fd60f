# number: H2
# task: softmax
# expect: wrong
"""Touches a sixteenth of the data, which no machine could read whole in that time."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; i++) {
    float top = x[i * n], sum = 0;
    for (int64_t j = 0; j < n; j += 16) top = std::max(top, x[i * n + j]);
    for (int64_t j = 0; j < n; j += 16) sum += std::exp(x[i * n + j] - top);
    for (int64_t j = 0; j < n; j++) y[i * n + j] = std::exp(x[i * n + j] - top) / (16 * sum);
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        LIB.rows(x, y, x.shape[0], x.shape[1])
        return y
