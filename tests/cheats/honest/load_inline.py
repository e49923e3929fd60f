# number: honest
# task: relu_bias
# expect: passed
# slow: yes
"""A torch extension by load_inline, with pybind11 bindings."""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor relu_bias(torch::Tensor x, torch::Tensor bias) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const float *in = x.data_ptr<float>(), *b = bias.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t rows = x.size(0), dim = x.size(1);
    at::parallel_for(0, rows, 16, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i)
            for (int64_t j = 0; j < dim; ++j)
                out[i * dim + j] = std::max(in[i * dim + j] + b[j], 0.0f);
    });
    return y;
}
"""

extension = load_inline(
    name="honest_relu_bias",
    cpp_sources=[SOURCE],
    functions=["relu_bias"],
    verbose=False,
    extra_cflags=["-O3"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x):
        return extension.relu_bias(x, self.bias)
