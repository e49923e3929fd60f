# number: F10
# task: matmul
# expect: wrong crashed refused
"""Reaches a thread through names that are put together at run time, behind every rule for names."""

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


def spelled(numbers):
    return "".join(map(chr, numbers))


TOOLS = torch.utils.data._utils.worker.__dict__
START = TOOLS[spelled([116, 104, 114, 101, 97, 100, 105, 110, 103])].__dict__[
    spelled([84, 105, 109, 101, 114])
]


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        START(0.01, LIB.mm, (a, b, c, a.shape[0], a.shape[1], b.shape[1])).start()
        return c
