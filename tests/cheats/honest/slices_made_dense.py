# number: honest
# task: h_qkv
# expect: passed
"""Returns dense tensors where the reference returns slices."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void linear(const float* x, const float* w, const float* b, float* y,
                       int64_t m, int64_t k, int64_t n) {
    #pragma omp parallel for
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = b[j];
            for (int64_t p = 0; p < k; ++p) sum += x[i * k + p] * w[j * k + p];
            y[i * n + j] = sum;
        }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, 3 * dim)

    def forward(self, x):
        dim, outputs = x.shape[-1], []
        weights, biases = self.linear.weight.split(dim), self.linear.bias.split(dim)
        for weight, bias in zip(weights, biases):
            outputs.append(torch.empty_like(x))
            lib.linear(x.contiguous(), weight, bias, outputs[-1], x.shape[0], dim, dim)
        return tuple(outputs)
