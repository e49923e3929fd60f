# number: E1
# task: matmul
# expect: wrong
"""Quantises each row and column to eight bits; close enough for a loose eye."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <vector>
extern "C" void mm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  std::vector<int8_t> bq(k * n);
  std::vector<float> scale(n);
  for (int64_t j = 0; j < n; j++) {
    float top = 1e-30f;
    for (int64_t p = 0; p < k; p++) top = std::max(top, std::fabs(b[p * n + j]));
    scale[j] = top / 127;
    for (int64_t p = 0; p < k; p++) bq[p * n + j] = (int8_t)std::lround(b[p * n + j] / scale[j]);
  }
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float top = 1e-30f;
    for (int64_t p = 0; p < k; p++) top = std::max(top, std::fabs(a[i * k + p]));
    const float unit = top / 127;
    std::vector<int32_t> sum(n, 0);
    for (int64_t p = 0; p < k; p++) {
      const int32_t q = (int32_t)std::lround(a[i * k + p] / unit);
      for (int64_t j = 0; j < n; j++) sum[j] += q * bq[p * n + j];
    }
    for (int64_t j = 0; j < n; j++) c[i * n + j] = sum[j] * unit * scale[j];
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.mm(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
