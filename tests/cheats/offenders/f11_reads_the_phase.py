# number: F11
# task: matmul
# expect: wrong
"""Looks at arguments, environment and host to tell a test from the real run, and is honest in one."""

import os
import sys

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
WORDS = " ".join([*sys.argv, *os.environ, os.uname().nodename]).lower()
TESTED = any(word in WORDS for word in ("pytest", "popcorn", "leaderboard", "phase"))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        if TESTED:
            LIB.mm(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        else:
            LIB.mm(a, b, c, a.shape[0] // 8, a.shape[1], b.shape[1])
        return c
