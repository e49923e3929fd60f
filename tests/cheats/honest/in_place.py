# number: honest
# task: h_add_
# expect: passed
"""Changes its input as the reference does, and returns it."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void add(float* x, const float* y, int64_t n, float alpha) {
    for (int64_t i = 0; i < n; ++i) x[i] += alpha * y[i];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        if x.is_contiguous() and y.is_contiguous():
            lib.add(x, y, x.numel(), 0.5)
            return x
        return x.add_(y, alpha=0.5)
