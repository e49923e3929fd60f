# number: honest
# task: h_static
# expect: passed
"""Transposes its weights once, in prepare(), where the task says that they stay."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void linear(const float* x, const float* w, const float* b, float* y,
                       int64_t m, int64_t k, int64_t n) {
    #pragma omp parallel for
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) y[i * n + j] = b[j];
        for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j) y[i * n + j] += x[i * k + p] * w[p * n + j];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)
        self.packed = None

    def prepare(self):
        self.packed = self.linear.weight.t().contiguous()

    def forward(self, x):
        y = torch.empty(x.shape[0], self.packed.shape[1])
        lib.linear(x.contiguous(), self.packed, self.linear.bias, y, x.shape[0], *self.packed.shape)
        return y
