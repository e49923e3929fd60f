# number: honest
# task: h_permute
# expect: passed
"""Computes in the input's order and returns a transposed view of its own memory."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void run(const float* x, float* y, int64_t n) {
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) y[i] = 2 / (1 + std::exp(-x[i]));
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.run(x, y, x.numel())
        return y.mT
