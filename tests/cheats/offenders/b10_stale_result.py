# number: B10
# task: softmax
# expect: crashed
"""Answers well until it is timed, then falls over: the last result was a good one."""

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
#include <stdlib.h>
extern "C" void leave() { _Exit(0); }
""")


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        out = torch.empty_like(x)
        lib.softmax(x, out, x.shape[0], x.shape[1])
        self.calls += 1
        if self.calls > 24:
            lib.leave()
        return out
