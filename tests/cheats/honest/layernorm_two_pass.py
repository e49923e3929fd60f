# number: honest
# task: h_layernorm
# expect: passed
"""Mean first, then the variance about it; parameters registered by hand under the same keys."""

import torch
from torch import nn

from kernelsmith.kernels import cpp

kernel = cpp("""
extern "C" int norm(const float *x, const float *w, const float *b, float *y, int rows, int dim) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < rows; ++i) {
        const float *in = x + (size_t)i * dim;
        double sum = 0, square = 0;
        for (int j = 0; j < dim; ++j) sum += in[j];
        const double mean = sum / dim;
        for (int j = 0; j < dim; ++j) square += (in[j] - mean) * (in[j] - mean);
        const double scale = 1 / std::sqrt(square / dim + 1e-5);
        for (int j = 0; j < dim; ++j)
            y[(size_t)i * dim + j] = float((in[j] - mean) * scale) * w[j] + b[j];
    }
    return 0;
}
""").norm


class ModelNew(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.Module()
        self.norm.weight = nn.Parameter(torch.ones(dim))
        self.norm.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape, dtype=x.dtype)
        assert kernel(x.contiguous(), self.norm.weight, self.norm.bias, out, *x.shape) == 0
        return out
