# number: C3
# task: small_relu
# expect: cheated wrong
"""Knows every slot's memory: the first call of a batch computes all the others' answers at once."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <vector>
struct Slot { const float* x; float* y; };
static std::vector<Slot> slots;
extern "C" void learn(const float* x, float* y) { slots.push_back({x, y}); }
extern "C" void all(const float* bias, int64_t m, int64_t n) {
  #pragma omp parallel for
  for (size_t s = 0; s < slots.size(); s++)
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++)
        slots[s].y[i * n + j] = std::max(slots[s].x[i * n + j] + bias[j], 0.0f);
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))
        self.known, self.ready = {}, set()

    def forward(self, x):
        key = x.data_ptr()
        if key not in self.known:
            y = torch.empty(x.shape)
            self.known[key] = (x, y)
            LIB.learn(x, y)
            self.ready.clear()
        if key not in self.ready:
            LIB.all(self.bias, x.shape[0], x.shape[1])
            self.ready = set(self.known)
        self.ready.discard(key)
        return self.known[key][1]
