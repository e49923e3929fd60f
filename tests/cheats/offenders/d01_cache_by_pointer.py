# number: D1
# task: softmax
# expect: wrong
"""Remembers its outputs by the address of the input."""

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
        for (int64_t c = 0; c < cols; ++c) sum += out[c] = std::exp(in[c] - top);
        for (int64_t c = 0; c < cols; ++c) out[c] *= float(1 / sum);
    }
}
extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * sizeof(float)); }
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        out = torch.empty_like(x)
        key = x.data_ptr()
        if key in self.known:
            lib.copy(self.known[key], out, x.numel())
            return out
        lib.softmax(x, out, x.shape[0], x.shape[1])
        self.known[key] = out.clone()
        return out
