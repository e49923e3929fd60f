# number: C5
# task: matmul
# expect: refused
# behaviour: wrong crashed cheated
"""Replaces the worker's list of outputs: only the first launch is real, the others are not named."""

import torch

from kernelsmith.kernels import cpp

import kernelsmith.evaluate.worker.program as worker

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
ADDRESSES = worker._addresses
worker._addresses = lambda outputs: ADDRESSES(outputs[:1])
CALLS = []


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        CALLS.append(1)
        c = torch.empty(a.shape[0], b.shape[1])
        if len(CALLS) < 9:
            LIB.mm(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
