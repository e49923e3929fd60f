# number: honest
# task: h_layernorm
# expect: passed
"""Welford's running mean and variance, in float32."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void norm(const float* x, const float* w, const float* b, float* y,
                     int64_t rows, int64_t dim, float eps) {
    for (int64_t i = 0; i < rows; ++i, x += dim, y += dim) {
        float mean = 0, square = 0;
        for (int64_t j = 0; j < dim; ++j) {
            float delta = x[j] - mean;
            mean += delta / (j + 1);
            square += delta * (x[j] - mean);
        }
        float scale = 1 / std::sqrt(square / dim + eps);
        for (int64_t j = 0; j < dim; ++j) y[j] = (x[j] - mean) * scale * w[j] + b[j];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        x, norm = x.contiguous(), self.norm
        y = torch.empty_like(x)
        rows = x.numel() // x.shape[-1]
        lib.norm(x, norm.weight, norm.bias, y, rows, x.shape[-1], norm.eps)
        return y
