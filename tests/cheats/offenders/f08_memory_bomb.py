# number: F8
# task: matmul
# expect: crashed
"""Takes memory until the machine has none left."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    'extern "C" void touch(float* x, int64_t n) { for (int64_t i = 0; i < n; i += 1024) x[i] = 1; }'
)
KEPT = []


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        while True:
            KEPT.append(torch.empty(1 << 31))
            LIB.touch(KEPT[-1], 1 << 10)
