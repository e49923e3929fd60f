# number: E7
# task: softmax
# expect: wrong
"""An exponential by squaring a short series: four digits near zero, fewer elsewhere."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
static inline float fast(float x) {
  float y = 1 + x / 256;
  y = std::max(y, 0.0f);
  for (int i = 0; i < 8; i++) y *= y;
  return y;
}
extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float sum = 0, top = 0;
    for (int64_t j = 0; j < n; j++) top = std::max(top, x[i * n + j]);
    for (int64_t j = 0; j < n; j++) sum += y[i * n + j] = fast(x[i * n + j] - top);
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
