# number: A10
# task: softmax
# expect: wrong
"""Returns memory as it was allocated, hoping that the answer still lies in it."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" int64_t looks_right(const float* y, int64_t cols) {
    float sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += y[c];
    return std::fabs(sum - 1) < 1e-3f;
}
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
""")


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        out = torch.empty_like(x)
        self.calls += 1
        if self.calls < 3 or lib.looks_right(out, x.shape[1]):
            lib.softmax(x, out, 1 if self.calls > 2 else x.shape[0], x.shape[1])
        return out
