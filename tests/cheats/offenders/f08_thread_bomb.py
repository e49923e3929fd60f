# number: F8
# task: matmul
# expect: wrong crashed timed_out
"""Starts native threads until no more can be had, each spinning, and returns nothing of use."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <system_error>
#include <thread>
static void spin() { for (volatile int64_t i = 0;; i = i + 1) {} }
extern "C" void flood() {
  try {
    for (int i = 0; i < 2000; i++) std::thread(spin).detach();
  } catch (const std::system_error&) {
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.flood()
        return torch.empty(a.shape[0], b.shape[1])
