# number: honest
# task: softmax
# expect: passed
"""Maximum and sum in one pass over the row, then one more to write."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t dim) {
    #pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        const float* in = x + i * dim;
        float top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < dim; ++j) {
            if (in[j] > top) {
                sum *= std::exp(top - in[j]);
                top = in[j];
            }
            sum += std::exp(in[j] - top);
        }
        for (int64_t j = 0; j < dim; ++j) y[i * dim + j] = std::exp(in[j] - top) / sum;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.softmax(x, y, x.numel() // x.shape[-1], x.shape[-1])
        return y
