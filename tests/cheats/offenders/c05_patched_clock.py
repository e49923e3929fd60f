# number: C5
# task: matmul
# expect: refused
# behaviour: wrong crashed
"""Patches every clock: reading the stop time first finishes the pending work."""

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
PENDING = []
REAL = time.perf_counter


def finish():
    stopped = REAL()
    while PENDING:
        LIB.mm(*PENDING.pop())
    return stopped


time.perf_counter = finish
time.perf_counter_ns = lambda: int(finish() * 1e9)
time.monotonic = finish
time.time = finish
torch.cpu.synchronize = lambda device=None: finish()


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        PENDING.append((a, b, c, a.shape[0], a.shape[1], b.shape[1]))
        return c
