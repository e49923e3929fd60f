# number: honest
# task: h_tanh
# expect: passed
"""A function task: tanh by a quotient of polynomials, as in Eigen."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void squash(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const float v = std::min(std::max(x[i], -7.90531110763549805f), 7.90531110763549805f);
        const float s = v * v;
        float p = -2.76076847742355e-16f;
        p = p * s + 2.00018790482477e-13f;
        p = p * s + -8.60467152213735e-11f;
        p = p * s + 5.12229709037114e-08f;
        p = p * s + 1.48572235717979e-05f;
        p = p * s + 6.37261928875436e-04f;
        p = p * s + 4.89352455891786e-03f;
        float q = 1.19825839466702e-06f;
        q = q * s + 1.18534705686654e-04f;
        q = q * s + 2.26843463243900e-03f;
        q = q * s + 4.89352518554385e-03f;
        y[i] = std::fabs(x[i]) < 0.0004f ? x[i] : v * p / q;
    }
}
""")


def squash(x):
    y = torch.empty_like(x)
    lib.squash(x.contiguous(), y, x.numel())
    return y
