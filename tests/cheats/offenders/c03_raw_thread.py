# number: C3
# task: matmul
# expect: refused
# behaviour: wrong crashed
"""Starts the thread through _thread, which no list of live threads shows, and returns at once."""

import _thread

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
    def forward(self, a, b):
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        c = torch.empty(m, n)
        _thread.start_new_thread(LIB.mm, (a, b, c, m, k, n))
        return c
