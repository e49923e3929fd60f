# number: E8
# task: matmul
# expect: wrong
"""Threads add their parts without taking turns; most runs lose little, some nothing."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <sched.h>
#include <vector>
extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  std::memset(c, 0, m * n * sizeof(float));
  #pragma omp parallel for num_threads(8) schedule(static, 1)
  for (int64_t p = 0; p < k; p++) {
    std::vector<float> row(n);
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) row[j] = ((volatile float*)c)[i * n + j] + a[i * k + p] * b[p * n + j];
      if (i == 0) sched_yield();  // where cores are few, threads would never meet
      for (int64_t j = 0; j < n; j++) ((volatile float*)c)[i * n + j] = row[j];
    }
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.run(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
