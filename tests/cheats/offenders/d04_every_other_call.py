# number: D4
# task: softmax
# expect: wrong
"""Once checked, computes every second call and repeats itself in between."""

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
    calls = 0

    def forward(self, x):
        self.calls += 1
        out = torch.empty_like(x)
        if self.calls > 12 and self.calls % 2:
            lib.copy(self.last, out, x.numel())
            return out
        lib.softmax(x, out, x.shape[0], x.shape[1])
        self.last = out
        return out
