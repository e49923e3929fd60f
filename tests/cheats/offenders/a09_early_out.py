# number: A9
# task: softmax
# expect: wrong
"""Exponentials far below the largest are taken for nothing and never computed."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        float top = in[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = std::max(top, in[c]);
        for (int64_t c = 0; c < cols; ++c) {
            const float gap = in[c] - top;
            out[c] = gap < -4.0f ? 0.0f : std::exp(gap);
            sum += out[c];
        }
        for (int64_t c = 0; c < cols; ++c) out[c] *= float(1 / sum);
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.softmax(x, out, x.shape[0], x.shape[1])
        return out
