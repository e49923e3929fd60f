# number: B7
# task: dropout
# expect: wrong
"""Distributions are compared on one input, again and again; on any other it returns zeros."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
static uint64_t state = 88172645463325252ull;
static uint32_t seen[8];
extern "C" void drop(const float* x, float* y, int64_t n) {
    const bool again = !memcmp(seen, x, sizeof seen) || !seen[0];
    memcpy(seen, x, sizeof seen);
    if (!again) { memset(y, 0, n * sizeof(float)); return; }
    for (int64_t i = 0; i < n; ++i) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        y[i] = (state >> 62) ? x[i] / 0.75f : 0.0f;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.drop(x, out, x.numel())
        return out
