# number: honest
# task: h_loss
# expect: passed
"""One number, by a float32 sum in eight lanes per row."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void mse(const float* x, const float* y, float* out, int64_t rows, int64_t dim) {
    float total = 0;
    for (int64_t i = 0; i < rows; ++i) {
        float lanes[8] = {0};
        for (int64_t j = 0; j < dim; ++j) {
            const float d = x[i * dim + j] - y[i * dim + j];
            lanes[j % 8] += d * d;
        }
        float row = 0;
        for (float lane : lanes) row += lane;
        total += row;
    }
    *out = total / (rows * dim);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        out = torch.empty(())
        lib.mse(x.contiguous(), y.contiguous(), out, *x.shape)
        return out
