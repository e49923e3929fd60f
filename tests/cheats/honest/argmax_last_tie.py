# number: honest
# task: h_argmax
# expect: passed
"""Takes the last of several largest elements, where torch takes the first."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void argmax(const float* x, int64_t* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) {
        y[i] = 0;
        for (int64_t j = 1; j < dim; ++j)
            if (x[i * dim + j] >= x[i * dim + y[i]]) y[i] = j;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64)
        lib.argmax(x.contiguous(), y, *x.shape)
        return y
