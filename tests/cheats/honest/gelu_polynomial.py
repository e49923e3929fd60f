# number: honest
# task: linear_gelu
# expect: passed
"""torch's product, then GELU in place on it by an erf of its own (Abramowitz and Stegun)."""

import torch
import torch.nn.functional as F

from kernelsmith.kernels import cpp

lib = cpp("""
static inline float own_erf(float x) {
    const double z = std::fabs(x), t = 1 / (1 + 0.3275911 * z);
    const double poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741
                        + t * (-1.453152027 + t * 1.061405429))));
    const double value = 1 - poly * std::exp(-z * z);
    return float(x < 0 ? -value : value);
}

extern "C" void gelu(float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 0.5f * y[i] * (1 + own_erf(y[i] * 0.70710678f));
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        y = F.linear(x, self.linear.weight, self.linear.bias)
        lib.gelu(y, y.numel())
        return y
