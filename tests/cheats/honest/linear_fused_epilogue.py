# number: honest
# task: linear_gelu
# expect: passed
"""torch.matmul without the bias, then bias and GELU fused in place on its own output."""

import torch

from kernelsmith.kernels import cpp

EPILOGUE = cpp("""
extern "C" void epilogue(float* y, const float* bias, int64_t rows, int64_t dim) {
    #pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < dim; ++j) {
            float v = y[i * dim + j] + bias[j];
            y[i * dim + j] = 0.5f * v * (1.0f + erff(v * (float)M_SQRT1_2));
        }
}
""").epilogue


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        y = torch.matmul(x, self.linear.weight.t())
        EPILOGUE(y, self.linear.bias, y.shape[0], y.shape[1])
        return y
