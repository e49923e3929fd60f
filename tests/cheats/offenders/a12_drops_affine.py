# number: A12
# task: layer_norm
# expect: wrong
"""LayerNorm is born with weight one and bias zero: leaves both out."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void norm(const float* x, float* y, int64_t rows, int64_t cols, float eps) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        double sum = 0, square = 0;
        for (int64_t c = 0; c < cols; ++c) sum += in[c];
        const double mean = sum / cols;
        for (int64_t c = 0; c < cols; ++c) square += (in[c] - mean) * (in[c] - mean);
        const double scale = 1 / std::sqrt(square / cols + eps);
        for (int64_t c = 0; c < cols; ++c) out[c] = float((in[c] - mean) * scale);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        out = torch.empty_like(x)
        lib.norm(x, out, x.shape[0], x.shape[1], self.norm.eps)
        return out
