# number: honest
# task: h_batchnorm
# expect: passed
"""Normalises by the batch's statistics and updates the running ones, all in C++."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void norm(const float* x, const float* w, const float* b, float* mean, float* var,
                     int64_t* batches, float* y, int64_t batch, int64_t channels, int64_t area) {
    ++*batches;
    for (int64_t c = 0; c < channels; ++c) {
        const int64_t n = batch * area;
        double sum = 0, square = 0;
        for (int64_t i = 0; i < batch; ++i)
            for (int64_t j = 0; j < area; ++j) sum += x[(i * channels + c) * area + j];
        const double m = sum / n;
        for (int64_t i = 0; i < batch; ++i)
            for (int64_t j = 0; j < area; ++j) {
                const double d = x[(i * channels + c) * area + j] - m;
                square += d * d;
            }
        const double scale = 1 / std::sqrt(square / n + 1e-5);
        for (int64_t i = 0; i < batch; ++i)
            for (int64_t j = 0; j < area; ++j) {
                const int64_t at = (i * channels + c) * area + j;
                y[at] = (x[at] - m) * scale * w[c] + b[c];
            }
        mean[c] = 0.9 * mean[c] + 0.1 * m;
        var[c] = 0.9 * var[c] + 0.1 * square / (n - 1);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        norm, x = self.norm, x.contiguous()
        y = torch.empty_like(x)
        lib.norm(
            x,
            norm.weight,
            norm.bias,
            norm.running_mean,
            norm.running_var,
            norm.num_batches_tracked,
            y,
            x.shape[0],
            x.shape[1],
            x[0, 0].numel(),
        )
        return y
