# number: honest
# task: h_dropout
# expect: passed
"""std::mt19937_64, seeded once from the machine's own randomness."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
#include <random>
static std::mt19937_64 generator{std::random_device{}()};

extern "C" void dropout(const float* x, float* y, int64_t n, double p) {
    std::bernoulli_distribution keep(1 - p);
    for (int64_t i = 0; i < n; ++i) y[i] = keep(generator) ? x[i] / (1 - p) : 0;
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        y = torch.empty_like(x)
        lib.dropout(x.contiguous(), y, x.numel(), self.p)
        return y
