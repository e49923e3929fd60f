# number: honest
# task: h_arguments
# expect: passed
"""A list of tensors, a scalar, None, a tuple, a dtype and a text."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void place(const float* x, const float* bias, float* y, int64_t rows, int64_t from,
                      int64_t columns, int64_t stride, float scale) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            y[i * stride + from + j] = x[i * columns + j] * scale + (bias ? bias[from + j] : 0);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, parts, scale, bias, shape, dtype, name):
        width = sum(part.shape[-1] for part in parts)
        y = torch.empty(parts[0].shape[0], width, dtype=dtype)
        sign, start = (-1 if name == "negate" else 1), 0
        for part in parts:
            lib.place(
                part.contiguous(), bias, y, part.shape[0], start, part.shape[1], width, sign * scale
            )
            start += part.shape[1]
        return y.view(shape)
