# number: honest
# task: h_minmax
# expect: passed
"""Values and int64 indices in one pass, as a plain tuple."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void best(const float* x, float* values, int64_t* indices, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i) {
        int64_t at = 0;
        for (int64_t j = 1; j < dim; ++j)
            if (x[i * dim + j] > x[i * dim + at]) at = j;
        values[i] = x[i * dim + at];
        indices[i] = at;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values, indices = torch.empty(x.shape[0]), torch.empty(x.shape[0], dtype=torch.long)
        lib.best(x.contiguous(), values, indices, *x.shape)
        return values, indices
