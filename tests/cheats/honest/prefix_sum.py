# number: honest
# task: h_cumsum
# expect: passed
"""Running sums in blocks: sums of blocks first, then what lies before each block is added."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void scan(const float* x, float* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i, x += dim, y += dim) {
        float before = 0;
        for (int64_t start = 0; start < dim; start += 32) {
            float sum = 0;
            for (int64_t j = start; j < std::min(dim, start + 32); ++j) y[j] = before + (sum += x[j]);
            before += sum;
        }
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.scan(x.contiguous(), y, *x.shape)
        return y
