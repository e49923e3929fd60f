# number: C4
# task: matmul
# expect: refused
# behaviour: wrong
"""Computes one row; a subclass claims by its properties that the tensor has all of them."""

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


class Tall(torch.Tensor):
    @property
    def shape(self):
        return torch.Size((160, 128))

    @property
    def dtype(self):
        return torch.float32

    def stride(self):
        return (128, 1)

    def data_ptr(self):
        return super().data_ptr()


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(1, b.shape[1])
        LIB.mm(a, b, c, 1, a.shape[1], b.shape[1])
        return c.as_subclass(Tall)
