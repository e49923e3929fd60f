# number: E7
# task: softmax
# expect: wrong
"""Takes the exponential from the exponent bits of one multiplication, good to three per cent."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
static inline float fast(float x) {
  int32_t bits = (int32_t)(12102203.0f * std::max(x, -80.0f) + 1064866805.0f);
  float y;
  std::memcpy(&y, &bits, 4);
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
