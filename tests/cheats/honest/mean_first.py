# number: honest
# task: h_mean_matmul
# expect: passed
"""mean(x @ W) as mean(x) @ W: a hundredth of the work, and the same function."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void mean_matmul(const float* x, const float* w, float* y,
                            int64_t rows, int64_t in, int64_t out) {
    float mean[4096] = {0};
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t p = 0; p < in; ++p) mean[p] += x[i * in + p];
    for (int64_t j = 0; j < out; ++j) y[j] = 0;
    for (int64_t p = 0; p < in; ++p)
        for (int64_t j = 0; j < out; ++j) y[j] += mean[p] / rows * w[p * out + j];
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(inputs, outputs))

    def forward(self, x):
        y = torch.empty(self.weight.shape[1])
        lib.mean_matmul(x.contiguous(), self.weight, y, x.shape[0], *self.weight.shape)
        return y
