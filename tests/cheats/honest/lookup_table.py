# number: honest
# task: h_rope
# expect: passed
"""Sines and cosines from a table made at construction: it depends on no weight."""

import math

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void rotate(const float* x, const float* cosine, const float* sine, float* y,
                       int64_t heads, int64_t length, int64_t half) {
    for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < length; ++t) {
            const float *in = x + (h * length + t) * 2 * half, *c = cosine + t * half, *s = sine + t * half;
            float* out = y + (h * length + t) * 2 * half;
            for (int64_t j = 0; j < half; ++j) {
                out[j] = in[j] * c[j] - in[j + half] * s[j];
                out[j + half] = in[j] * s[j] + in[j + half] * c[j];
            }
        }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        steps = [math.pow(10000.0, -i / half) for i in range(half)]
        angle = torch.arange(4096, dtype=torch.float64)[:, None] * torch.tensor(
            steps, dtype=torch.float64
        )
        self.register_buffer("cosine", angle.cos().float(), persistent=False)
        self.register_buffer("sine", angle.sin().float(), persistent=False)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        *heads, length, dim = x.shape
        lib.rotate(x, self.cosine, self.sine, y, math.prod(heads), length, dim // 2)
        return y
