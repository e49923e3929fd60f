"""SiLU and product in one sweep."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(
    r"""
extern "C" void swiglu(const float* gate, const float* up, float* y, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        y = torch.empty_like(gate)
        lib.swiglu(gate, up, y, y.numel())
        return y
