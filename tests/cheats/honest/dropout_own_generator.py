# number: honest
# task: h_dropout
# expect: passed
"""A counter-based generator of its own, seeded from torch's in every call."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
static inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
extern "C" void dropout(const float* x, float* y, int64_t n, float p, uint64_t seed) {
    const float scale = 1 / (1 - p);
    #pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        const float u = (mix(seed + mix(i)) >> 40) * 0x1p-24f;
        y[i] = u < p ? 0 : x[i] * scale;
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        y = torch.empty_like(x)
        seed = int(torch.randint(0, 2**62, ()))
        lib.dropout(x.contiguous(), y, x.numel(), self.p, seed)
        return y
