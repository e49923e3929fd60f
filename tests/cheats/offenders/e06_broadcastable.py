# number: E6
# task: softmax
# expect: wrong
"""Returns one row where 256 are due, for a comparison that broadcasts."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void row(const float* x, float* y, int64_t n) {
  float top = x[0], sum = 0;
  for (int64_t j = 0; j < n; j++) top = std::max(top, x[j]);
  for (int64_t j = 0; j < n; j++) sum += y[j] = std::exp(x[j] - top);
  for (int64_t j = 0; j < n; j++) y[j] /= sum;
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(1, x.shape[1])
        LIB.row(x, y, x.shape[1])
        return y
