# number: E1
# task: matmul
# expect: wrong
"""Multiplies in bfloat16 and widens the result with a kernel of its own."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void widen(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)x[i] << 16;
    std::memcpy(y + i, &bits, 4);
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        low = torch.matmul(a.bfloat16(), b.bfloat16())
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.widen(low, c, c.numel())
        return c
