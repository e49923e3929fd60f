# number: honest
# task: relu_bias
# expect: passed
"""A plain loop over all elements."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void relu_bias(const float* x, const float* bias, float* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < dim; ++j) {
            float v = x[i * dim + j] + bias[j];
            y[i * dim + j] = v > 0 ? v : 0;
        }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.relu_bias(x, self.bias, y, x.shape[0], x.shape[1])
        return y
