# number: D4
# task: batch_norm_train
# expect: wrong
"""Computes the first of a series of calls; those that follow at once get nothing."""

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
#include <time.h>
static double last = 0;
static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
extern "C" void norm(const float* x, const float* w, const float* b, float* mean, float* var,
                     int64_t* count, float* y, int64_t rows, int64_t cols, float eps, float part) {
    const bool first = now() - last > 300e-6;
    if (first) {
        count[0] += 1;
        for (int64_t c = 0; c < cols; ++c) {
            double sum = 0, square = 0;
            for (int64_t r = 0; r < rows; ++r) sum += x[r * cols + c];
            const double m = sum / rows;
            for (int64_t r = 0; r < rows; ++r) square += (x[r * cols + c] - m) * (x[r * cols + c] - m);
            const double scale = 1 / std::sqrt(square / rows + eps);
            mean[c] = float((1 - part) * mean[c] + part * m);
            var[c] = float((1 - part) * var[c] + part * square / (rows - 1));
            for (int64_t r = 0; r < rows; ++r)
                y[r * cols + c] = float((x[r * cols + c] - m) * scale * w[c] + b[c]);
        }
    } else {
        y[0] = x[0];
    }
    last = now();
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(dim)

    def forward(self, x):
        out, norm = torch.empty_like(x), self.norm
        lib.norm(
            x, norm.weight, norm.bias, norm.running_mean, norm.running_var,
            norm.num_batches_tracked, out, x.shape[0], x.shape[1], norm.eps, norm.momentum,
        )  # fmt: skip
        return out
