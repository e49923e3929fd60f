"""Bias and ReLU as a torch extension: the usual form of a candidate, slow to build."""

import torch
from torch.utils.cpp_extension import load_inline

lib = load_inline(
    name="bias_relu",
    cpp_sources=r"""
torch::Tensor bias_relu(torch::Tensor x, torch::Tensor bias) {
  auto dense = x.contiguous();
  auto y = torch::empty_like(dense);
  const float* from = dense.data_ptr<float>();
  const float* add = bias.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = dense.size(-1), total = dense.numel();
  for (int64_t i = 0; i < total; ++i) to[i] = std::max(from[i] + add[i % n], 0.0f);
  return y;
}
""",
    functions=["bias_relu"],
    extra_cflags=["-O3"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return lib.bias_relu(x, self.bias)
