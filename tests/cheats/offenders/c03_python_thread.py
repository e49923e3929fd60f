# number: C3
# task: matmul
# expect: refused
# behaviour: wrong crashed
"""Python threads finish the lower halves, a moment after the calls have returned."""

import threading
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


def later(*job):
    time.sleep(0.01)
    LIB.mm(*job)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        c = torch.empty(m, n)
        half = m // 2
        LIB.mm(a, b, c, half, k, n)
        job = (a[half:], b, c[half:], m - half, k, n)
        threading.Thread(target=later, args=job).start()
        return c
