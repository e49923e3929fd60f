# number: E6
# task: matmul
# expect: wrong
"""The first launch of a batch describes all; later ones return a scalar's worth of memory."""

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
"""
)


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        rows = a.shape[0] if self.calls % 2 else 1
        c = torch.empty(rows, b.shape[1])
        LIB.mm(a, b, c, rows, a.shape[1], b.shape[1])
        return c
