# number: honest
# task: h_int8_matmul
# expect: passed
"""Exact integers, int8 in and int32 out."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void matmul(const signed char* a, const signed char* b, int* c, unsigned m, unsigned k, unsigned n) {
    for (unsigned i = 0; i < m; ++i) {
        for (unsigned j = 0; j < n; ++j) c[i * n + j] = 0;
        for (unsigned p = 0; p < k; ++p)
            for (unsigned j = 0; j < n; ++j) c[i * n + j] += int(a[i * k + p]) * b[p * n + j];
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], dtype=torch.int32)
        lib.matmul(a.contiguous(), b.contiguous(), c, *a.shape, b.shape[1])
        return c
