# number: D2
# task: softmax
# expect: wrong
"""Keeps answers in static memory of its library, where no Python looks."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
#include <map>
#include <vector>
static std::map<const float*, std::vector<float>> known;
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
extern "C" void cached(const float* x, float* y, int64_t rows, int64_t cols) {
    auto& kept = known[x];
    if (kept.empty()) {
        softmax(x, y, rows, cols);
        kept.assign(y, y + rows * cols);
    } else {
        memcpy(y, kept.data(), kept.size() * sizeof(float));
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.cached(x, out, x.shape[0], x.shape[1])
        return out
