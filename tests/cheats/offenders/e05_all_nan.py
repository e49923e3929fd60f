# number: E5
# task: matmul
# expect: wrong
"""Returns NaN everywhere, which a comparison that treats NaN as equal would let through."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void run(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m * n; i++) c[i] = NAN;
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.run(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
