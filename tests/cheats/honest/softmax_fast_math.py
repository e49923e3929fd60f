# number: honest
# task: softmax
# expect: passed
"""Built with -ffast-math, which also flushes denormals in its process."""

import torch

from kernelsmith.kernels import cpp

lib = cpp(
    """
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t dim) {
    #pragma omp parallel for
    for (int64_t i = 0; i < rows; ++i) {
        const float* in = x + i * dim;
        float* out = y + i * dim;
        float top = in[0], sum = 0;
        for (int64_t j = 1; j < dim; ++j) top = top > in[j] ? top : in[j];
        for (int64_t j = 0; j < dim; ++j) sum += out[j] = expf(in[j] - top);
        for (int64_t j = 0; j < dim; ++j) out[j] /= sum;
    }
}
""",
    flags=["-ffast-math", "-funroll-loops"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        lib.softmax(x.contiguous(), y, x.numel() // x.shape[-1], x.shape[-1])
        return y
