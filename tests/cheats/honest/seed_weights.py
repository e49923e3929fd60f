# number: honest
# task: h_seed
# expect: passed
"""Constructs the same layer under the same seed, and keeps its weights transposed."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void linear(const float* x, const float* w, const float* b, float* y,
                       int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) y[i * n + j] = b[j];
        for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j) y[i * n + j] += x[i * k + p] * w[p * n + j];
        for (int64_t j = 0; j < n; ++j) y[i * n + j] = std::max(y[i * n + j], 0.0f);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        linear = torch.nn.Linear(inputs, outputs)
        self.weight = torch.nn.Parameter(linear.weight.t().contiguous())
        self.bias = linear.bias

    def forward(self, x):
        y = torch.empty(x.shape[0], self.bias.shape[0])
        lib.linear(x.contiguous(), self.weight, self.bias, y, x.shape[0], *self.weight.shape)
        return y
