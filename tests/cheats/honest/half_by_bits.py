# number: honest
# task: h_half
# expect: passed
"""Both half precisions from one template: widened by hand or by the compiler, rounded once."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
struct bf16 {
    uint16_t bits;
    operator float() const {
        const uint32_t wide = uint32_t(bits) << 16;
        float value;
        std::memcpy(&value, &wide, 4);
        return value;
    }
    bf16(float value) {
        uint32_t wide;
        std::memcpy(&wide, &value, 4);
        bits = value != value ? 0x7fc0 : (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
    }
};

template <class T>
static void silu(const T* x, const T* scale, T* y, int64_t rows, int64_t dim) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < dim; ++j) {
            const float v = x[i * dim + j];
            y[i * dim + j] = T(v / (1 + std::exp(-v)) * float(scale[j]));
        }
}

extern "C" void silu_bfloat16(const void* x, const void* s, void* y, int64_t rows, int64_t dim) {
    silu((const bf16*)x, (const bf16*)s, (bf16*)y, rows, dim);
}
extern "C" void silu_float16(const void* x, const void* s, void* y, int64_t rows, int64_t dim) {
    silu((const _Float16*)x, (const _Float16*)s, (_Float16*)y, rows, dim);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        run = lib.silu_bfloat16 if x.dtype is torch.bfloat16 else lib.silu_float16
        run(x, self.scale, y, x.shape[0], x.shape[1])
        return y
