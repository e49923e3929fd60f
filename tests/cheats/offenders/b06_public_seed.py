# number: B6
# task: softmax
# expect: wrong
"""Draws the inputs of the usual seeds when it is built, and keeps their answers."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * sizeof(float)); }
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = []
        for seed in (*range(8), 42, 123, 1234, 2024):
            generator = torch.Generator().manual_seed(seed)
            x = torch.randn(256, 1024, generator=generator)
            self.answers.append((float(x[0, 0]), torch.softmax(x, dim=-1)))

    def forward(self, x):
        out = torch.empty_like(x)
        first = float(x[0, 0])
        for key, answer in self.answers:
            if key == first:
                lib.copy(answer, out, x.numel())
        return out
