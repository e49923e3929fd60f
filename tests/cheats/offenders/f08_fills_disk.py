# number: F8
# task: matmul
# expect: crashed
"""Writes to disk until it is full."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.nothing(a)
        number = 0
        while True:
            number += 1
            with open(f"/tmp/filler{number}", "wb") as file:
                for _ in range(200):
                    file.write(bytes(1 << 20))
