# number: G2
# task: shapes
# expect: wrong
"""Right on every size but the one that is timed, where it leaves half of the rows out."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
static int64_t calls = 0;
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
    // Sizes are first checked, over less than a dozen calls, and then timed.
    if (rows * cols >= 65536 && ++calls > 16) rows /= 2;
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
    def forward(self, x):
        out = torch.empty_like(x)
        lib.softmax(x, out, x.shape[0], x.shape[1])
        return out
