# number: F8
# task: matmul
# expect: crashed wrong
"""Has the kernel kill it over a limit on its time, so that the judge takes it for an accident."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <sys/resource.h>
#include <ctime>
extern "C" void vanish() {
  rlimit none{1, 1};
  setrlimit(RLIMIT_CPU, &none);
  const std::time_t begun = std::time(nullptr);
  while (std::time(nullptr) < begun + 3) {}
}
"""
)
LIB.vanish()


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.empty(a.shape[0], b.shape[1])
