# number: honest
# task: matmul
# expect: passed
"""Rows over OpenMP threads; the kernel's text is made with the shapes in it and kept by shape."""

import functools

import torch

from kernelsmith.kernels import cpp


@functools.lru_cache(maxsize=None)
def kernel(m, k, n):
    return cpp(f"""
constexpr int M = {m}, K = {k}, N = {n};
extern "C" void matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {{
    #pragma omp parallel for
    for (int i = 0; i < M; ++i) {{
        float row[N] = {{0}};
        for (int p = 0; p < K; ++p)
            for (int j = 0; j < N; ++j) row[j] += a[i * K + p] * b[p * N + j];
        for (int j = 0; j < N; ++j) c[i * N + j] = row[j];
    }}
}}
""").matmul


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = a.new_empty(a.shape[0], b.shape[1])
        kernel(*a.shape, b.shape[1])(a, b, c)
        return c
