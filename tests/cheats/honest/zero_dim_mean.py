# number: honest
# task: h_mean_all
# expect: passed
"""A mean that nearly cancels, by float32 sums of rows."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" float mean(const float* x, int64_t rows, int64_t dim) {
    float total = 0;
    for (int64_t i = 0; i < rows; ++i) {
        float lanes[16] = {0}, row = 0;
        for (int64_t j = 0; j < dim; ++j) lanes[j % 16] += x[i * dim + j];
        for (float lane : lanes) row += lane;
        total += row;
    }
    return total / (rows * dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.tensor(lib.mean(x.contiguous(), *x.shape))
