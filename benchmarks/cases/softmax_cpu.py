"""Softmax, three sweeps over each row."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(
    r"""
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * n;
    float* to = y + row * n;
    float top = from[0], sum = 0.0f;
    for (int64_t i = 1; i < n; ++i) top = std::max(top, from[i]);
    for (int64_t i = 0; i < n; ++i) sum += to[i] = std::exp(from[i] - top);
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] / sum;
  }
}
""",
    flags=["-ffast-math"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows = x.numel() // x.shape[-1] if x.numel() else 0
        lib.softmax(x, y, rows, x.shape[-1])
        return y
