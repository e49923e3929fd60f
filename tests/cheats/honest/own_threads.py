# number: honest
# task: relu_bias
# expect: passed
"""Starts threads of its own and joins them before it returns."""

import torch

from kernelsmith.kernels import cpp

SOURCE = r"""
#include <thread>
#include <vector>

static void some(const float* x, const float* bias, float* y, int64_t from, int64_t to, int64_t dim) {
    for (int64_t i = from; i < to; ++i)
        for (int64_t j = 0; j < dim; ++j) y[i * dim + j] = std::max(x[i * dim + j] + bias[j], 0.0f);
}

extern "C" {
void relu_bias(const float* x, const float* bias, float* y, int64_t rows, int64_t dim) {
    const int count = 3;
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
        threads.emplace_back(some, x, bias, y, rows * t / count, rows * (t + 1) / count, dim);
    for (auto& each : threads) each.join();
}
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(dim))
        self.lib = cpp(SOURCE)

    def forward(self, x):
        y = torch.empty(x.shape)
        self.lib.relu_bias(x.contiguous(), self.bias, y, *x.shape)
        return y
