# number: C4
# task: matmul
# expect: refused
# behaviour: wrong crashed
"""Swaps the class of a plain tensor after the call so that reading its address finishes the work."""

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


class Late(torch.Tensor):
    def data_ptr(self):
        LIB.mm(*self.job)
        return torch.Tensor.data_ptr(self)

    def numpy(self):
        LIB.mm(*self.job)
        return torch.Tensor.numpy(self)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        plain = c.view_as(c)
        c.__class__ = Late
        c.job = (a, b, plain, a.shape[0], a.shape[1], b.shape[1])
        return c
