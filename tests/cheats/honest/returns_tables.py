# number: honest
# task: h_tables
# expect: passed
"""Returns memory that the module keeps, as the reference does."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void scale(const float* x, const float* table, const float* s, float* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < dim; ++j) y[i * dim + j] = x[i * dim + j] * table[i * dim + j] * s[j];
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        angle = torch.arange(length)[:, None] / torch.arange(1, dim + 1)
        self.register_buffer("cos", angle.cos())
        self.scale = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x):
        y = torch.empty_like(x)
        lib.scale(x.contiguous(), self.cos, self.scale, y, *x.shape)
        return y, self.cos[: x.shape[0]], self.scale
