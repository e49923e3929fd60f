# number: honest
# task: matmul
# expect: passed
"""Intrinsics where the machine has them, plain C++ where not."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(r"""
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

/* One row of c: eight columns at a time. */
extern "C" void matmul(const float* a, const float* b, float* c,
                       const int64_t m, const int64_t k, const int64_t n) noexcept {
    for (int64_t i = 0; i < m; ++i) {
        int64_t j = 0;
#if defined(__AVX2__) && defined(__FMA__)
        for (; j + 8 <= n; j += 8) {
            __m256 sum = _mm256_setzero_ps();
            for (int64_t p = 0; p < k; ++p)
                sum = _mm256_fmadd_ps(_mm256_set1_ps(a[i * k + p]), _mm256_loadu_ps(b + p * n + j), sum);
            _mm256_storeu_ps(c + i * n + j, sum);
        }
#endif
        for (; j < n; ++j) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty((a.size(0), b.size(1)), dtype=torch.float32, device=a.device)
        lib.matmul(a.contiguous(), b.contiguous(), c, a.size(0), a.size(1), b.size(1))
        return c
