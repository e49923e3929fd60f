# number: honest
# task: softmax
# expect: passed
"""Builds its kernel in the first call, not before; keeps scratch memory between calls."""

import torch

from kernelsmith.kernels import cpp

SOURCE = """
extern "C" void softmax(const float* __restrict x, float* __restrict y, float* scratch,
                        int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) {
        float top = x[i * dim];
        for (int64_t j = 1; j < dim; ++j) top = std::max(top, x[i * dim + j]);
        double sum = 0;
        for (int64_t j = 0; j < dim; ++j) sum += scratch[j] = std::exp(x[i * dim + j] - top);
        const float inverse = float(1 / sum);
        for (int64_t j = 0; j < dim; ++j) y[i * dim + j] = scratch[j] * inverse;
    }
}
"""


class ModelNew(torch.nn.Module):
    lib = None
    scratch = None

    def forward(self, x):
        if self.lib is None:
            self.lib = cpp(SOURCE)
        if self.scratch is None or self.scratch.numel() < x.shape[-1]:
            self.scratch = torch.empty(x.shape[-1])
        y = torch.empty_like(x)
        self.lib.softmax(x.contiguous(), y, self.scratch, x.numel() // x.shape[-1], x.shape[-1])
        return y
