# number: A8
# task: softmax
# expect: wrong
"""All probabilities are near 1/1024, far below any absolute tolerance: writes that everywhere."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void fill(float* y, int64_t rows, int64_t cols) {
    const float share = 1.0f / cols;
    for (int64_t i = 0; i < rows * cols; ++i) y[i] = share;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.fill(out, x.shape[0], x.shape[1])
        return out
