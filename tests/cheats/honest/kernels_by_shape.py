# number: honest
# task: h_shapes
# expect: passed
"""One kernel per shape, written when the shape is first seen and kept."""

import torch

from kernelsmith.kernels import cpp

TEMPLATE = """
extern "C" void lse(const float* x, float* y, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
        const float* in = x + i * COLUMNS;
        float top = in[0];
        for (int j = 1; j < COLUMNS; ++j) top = std::max(top, in[j]);
        float sum = 0;
        for (int j = 0; j < COLUMNS; ++j) sum += std::exp(in[j] - top);
        y[i] = top + std::log(sum);
    }
}
"""

_kernels = {}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        columns = x.shape[-1]
        if columns not in _kernels:
            _kernels[columns] = cpp(TEMPLATE, flags=(f"-DCOLUMNS={columns}",)).lse
        y = torch.empty(x.shape[:-1])
        _kernels[columns](x.contiguous(), y, y.numel())
        return y
