# number: honest
# task: h_blur
# expect: passed
"""Weights of a fixed filter by numpy, written into the source as constants."""

import math

import numpy as np
import torch

from kernelsmith.kernels import cpp


def build(radius, sigma):
    place = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (place / sigma) ** 2)
    weights /= math.fsum(weights)
    text = ", ".join(f"{w:.9e}f" for w in weights)
    return cpp(f"""
static const float weights[] = {{{text}}};
extern "C" void blur(const float* x, float* y, int64_t rows, int64_t dim) {{
    constexpr int R = {radius};
    for (int64_t i = 0; i < rows; ++i, x += dim, y += dim)
        for (int64_t j = 0; j < dim; ++j) {{
            float sum = 0;
            for (int r = -R; r <= R; ++r)
                if (j + r >= 0 && j + r < dim) sum += weights[r + R] * x[j + r];
            y[j] = sum;
        }}
}}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, radius, sigma):
        super().__init__()
        self.lib = build(radius, sigma)

    def forward(self, x):
        y = torch.empty_like(x)
        self.lib.blur(x.contiguous(), y, *x.shape)
        return y
