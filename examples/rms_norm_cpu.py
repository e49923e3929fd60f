"""RMSNorm in one pass over each row: C++ with OpenMP and SIMD."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(
    r"""
extern "C" void rms_norm(const float* x, const float* weight, float* y,
                         int64_t rows, int64_t dim, float eps) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * dim;
    float* to = y + row * dim;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < dim; ++i) sum += from[i] * from[i];
    const float scale = 1.0f / std::sqrt(sum / dim + eps);
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) to[i] = from[i] * scale * weight[i];
  }
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows = x.numel() // x.shape[-1] if x.numel() else 0
        lib.rms_norm(x, self.weight, y, rows, x.shape[-1], self.eps)
        return y
