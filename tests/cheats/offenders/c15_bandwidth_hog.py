# number: C15
# task: relu_bias
# expect: cheated
"""A native thread streams through memory for ever to starve the baseline; torch does the work."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <thread>
#include <vector>
static void hog() {
  static std::vector<char> first(32 << 20), second(32 << 20);
  for (;;) std::memcpy(first.data(), second.data(), first.size());
}
extern "C" void start() { std::thread(hog).detach(); }
"""
)
LIB.start()


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return torch.relu(x + self.bias)
