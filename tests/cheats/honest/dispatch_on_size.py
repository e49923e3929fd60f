# number: honest
# task: h_shapes
# expect: passed
"""Two ways, by size, and both are right."""

import torch

try:
    from kernelsmith.kernels import cpp
except ImportError as error:
    raise RuntimeError("run me under the judge") from error

try:
    import triton
except ImportError:
    triton = None

lib = cpp("""
static float one(const float* x, int64_t n) {
    float top = x[0], sum = 0;
    for (int64_t j = 1; j < n; ++j) top = x[j] > top ? x[j] : top;
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x[j] - top);
    return top + std::log(sum);
}
extern "C" void serial(const float* x, float* y, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows; ++i) y[i] = one(x + i * n, n);
}
extern "C" void parallel(const float* x, float* y, int64_t rows, int64_t n) {
    #pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) y[i] = one(x + i * n, n);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0])
        run = lib.parallel if x.numel() > 20000 else lib.serial
        run(x, y, *x.shape)
        return y
