# number: honest
# task: h_compute_bf16
# expect: passed
"""Rounds both operands to bfloat16, as the task allows, and adds up in float32."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
static inline float rounded(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    std::memcpy(&x, &bits, 4);
    return x;
}
extern "C" void matmul(const float* x, const float* w, float* y, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) y[i * n + j] = 0;
        for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j) y[i * n + j] += rounded(x[i * k + p]) * rounded(w[p * n + j]);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(inputs, outputs))

    def forward(self, x):
        y = torch.empty(x.shape[0], self.weight.shape[1])
        lib.matmul(x.contiguous(), self.weight, y, x.shape[0], *self.weight.shape)
        return y
