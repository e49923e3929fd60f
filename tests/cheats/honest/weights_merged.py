# number: honest
# task: h_two_linear
# expect: passed
"""x @ A @ B as x @ (A @ B), the product taken anew in every call."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
static void product(const float* a, const float* b, float* c, int64_t m, int64_t k, int64_t n) {
    #pragma omp parallel for
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
        for (int64_t p = 0; p < k; ++p)
            for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}
extern "C" void chain(const float* x, const float* a, const float* b, float* both, float* y,
                      int64_t rows, int64_t in, int64_t hidden, int64_t out) {
    product(a, b, both, in, hidden, out);
    product(x, both, y, rows, in, out);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = torch.nn.Parameter(torch.empty(inputs, hidden))
        self.second = torch.nn.Parameter(torch.empty(hidden, outputs))
        self.register_buffer("both", torch.empty(inputs, outputs), persistent=False)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0], self.second.shape[1])
        lib.chain(
            x,
            self.first,
            self.second,
            self.both,
            y,
            x.shape[0],
            *self.first.shape,
            self.second.shape[1],
        )
        return y
