# number: honest
# task: h_permute
# expect: passed
"""Returns contiguous memory where eager's is permuted."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void run(const float* x, float* y, int64_t batch, int64_t rows, int64_t columns) {
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t j = 0; j < columns; ++j)
            for (int64_t i = 0; i < rows; ++i)
                y[(b * columns + j) * rows + i] = 2 / (1 + std::exp(-x[(b * rows + i) * columns + j]));
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        batch, rows, columns = x.shape
        y = torch.empty(batch, columns, rows)
        lib.run(x.contiguous(), y, batch, rows, columns)
        return y
