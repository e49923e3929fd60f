# number: honest
# task: h_observer
# expect: passed
"""Its output depends on a buffer that every call changes, as in the reference."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void observe(const float* x, float* largest, int64_t* calls, float* y, int64_t n) {
    float top = 0;
    for (int64_t i = 0; i < n; ++i) top = std::max(top, std::fabs(x[i]));
    *largest = *largest * 0.9f + top * 0.1f;
    ++*calls;
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / *largest;
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.ones(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = torch.empty_like(x)
        lib.observe(x.contiguous(), self.largest, self.calls, y, x.numel())
        return y
