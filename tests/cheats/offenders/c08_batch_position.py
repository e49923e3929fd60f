# number: C8
# task: matmul
# expect: wrong
"""Tells a batch's start by the pause before it; works only on the launches near to it."""

import time

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
    seen, position, batches = 0.0, 0, 0

    def forward(self, a, b):
        now = time.perf_counter()
        self.position += 1
        if now - self.seen > 0.002:
            self.position, self.batches = 0, self.batches + 1
        c = torch.empty(a.shape[0], b.shape[1])
        if self.batches < 3 or self.position < 4:
            LIB.mm(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        self.seen = time.perf_counter()
        return c
