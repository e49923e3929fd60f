# number: E1
# task: matmul
# expect: wrong
"""Rounds both factors to bfloat16 before it multiplies: half the bytes, a hundredth of the digits."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
static inline float rounded(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, 4);
  return x;
}
extern "C" void mm(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; j++) row[j] = 0;
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += rounded(a[i * k + p]) * rounded(b[p * n + j]);
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.mm(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
