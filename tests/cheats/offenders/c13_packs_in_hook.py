# number: C13
# task: linear_gelu
# expect: wrong
"""Transposes the weights in a loading hook, outside the clock, and never looks at them again."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
extern "C" void lin(const float* x, const float* w, const float* bias, float* y, int64_t m,
                    int64_t k, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    float* row = y + i * n;
    for (int64_t j = 0; j < n; j++) row[j] = bias[j];
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) row[j] += x[i * k + p] * w[p * n + j];
    for (int64_t j = 0; j < n; j++) row[j] *= 0.5f * (1 + std::erf(row[j] * 0.70710678118f));
  }
}
"""
)


def run(x, packed, bias):
    y = torch.empty(x.shape[0], packed.shape[1])
    LIB.lin(x, packed, bias, y, x.shape[0], packed.shape[0], packed.shape[1])
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)
        self.register_load_state_dict_post_hook(self.pack)

    def pack(self, *_):
        self.packed = self.linear.weight.detach().t().contiguous()
        self.shift = self.linear.bias.detach().clone()

    def forward(self, x):
        return run(x, self.packed, self.shift)
