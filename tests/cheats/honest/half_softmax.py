# number: honest
# task: h_half_softmax
# expect: passed
"""Softmax in bfloat16 that also rounds in between, as a fused kernel on narrow registers would."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
static float wide(uint16_t x) {
    uint32_t bits = uint32_t(x) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
static uint16_t narrow(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
extern "C" void softmax(const uint16_t* x, uint16_t* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i, x += dim, y += dim) {
        float top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < dim; ++j) top = std::max(top, wide(x[j]));
        for (int64_t j = 0; j < dim; ++j) {
            const float e = std::exp(wide(x[j]) - top);
            sum += e;
            y[j] = narrow(e);
        }
        for (int64_t j = 0; j < dim; ++j) y[j] = narrow(wide(y[j]) / sum);
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.softmax(x.contiguous(), y, *x.shape)
        return y
