# number: E4
# task: matmul
# expect: wrong
"""One element of 20,480 is off by a ten-thousandth, found by no average."""

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
  mm(a, b, c, m, k, n);
  c[m * n / 2] += 0.005f;
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.run(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
