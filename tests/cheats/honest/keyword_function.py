# number: honest
# task: h_swiglu
# expect: passed
"""A function whose arguments come by name."""

import torch

from kernelsmith.kernels import cpp

_lib = cpp("""
extern "C" void swiglu(const float* gate, const float* up, float* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}
""")


def swiglu(gate, up):
    gate, up = gate.contiguous(), up.contiguous()
    y = torch.empty_like(gate)
    _lib.swiglu(gate, up, y, gate.numel())
    return y
