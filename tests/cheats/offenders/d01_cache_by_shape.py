# number: D1
# task: softmax
# expect: wrong
"""One answer per shape, once it has been asked often enough to have been checked."""

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
        self.known, self.calls = {}, {}

    def forward(self, x):
        self.calls[x.shape] = self.calls.get(x.shape, 0) + 1
        out = torch.empty_like(x)
        if self.calls[x.shape] > 10:
            lib.copy(self.known[x.shape], out, x.numel())
            return out
        lib.softmax(x, out, x.shape[0], x.shape[1])
        self.known[x.shape] = out.clone()
        return out
