# number: E5
# task: matmul
# expect: wrong
"""Fills the rows that it does not compute with infinity, so that differences become NaN."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void mm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += a[i * k + p] * b[p * n + j];
  }
}
extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  mm(a, b, c, m / 2, k, n);
  for (int64_t i = m / 2 * n; i < m * n; i++) c[i] = INFINITY;
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.run(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
