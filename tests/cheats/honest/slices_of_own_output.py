# number: honest
# task: h_qkv
# expect: passed
"""Three slices of one product of its own, with gaps where the reference has them."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(
    """
extern "C" void linear(const float* x, const float* w, const float* b, float* y,
                       int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t p = 0; p < k; ++p) sum += x[i * k + p] * w[j * k + p];
            y[i * n + j] = sum + b[j];
        }
}
""",
    flags=["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, 3 * dim)

    def forward(self, x):
        n, k = self.linear.weight.shape
        y = torch.empty(x.shape[0], n)
        lib.linear(x.contiguous(), self.linear.weight, self.linear.bias, y, x.shape[0], k, n)
        return y.chunk(3, dim=-1)
