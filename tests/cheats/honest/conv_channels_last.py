# number: honest
# task: h_conv
# expect: passed
"""Computes in channels-last order and returns its output like that: dense, not contiguous."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void conv(const float* x, const float* w, const float* bias, float* y,
                     int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width) {
    #pragma omp parallel for collapse(2)
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < height; ++i)
            for (int64_t j = 0; j < width; ++j) {
                float* to = y + ((b * height + i) * width + j) * out;
                for (int64_t o = 0; o < out; ++o) to[o] = bias[o];
                for (int64_t u = 0; u < 3; ++u)
                    for (int64_t v = 0; v < 3; ++v) {
                        const int64_t r = i + u - 1, s = j + v - 1;
                        if (r < 0 || r >= height || s < 0 || s >= width) continue;
                        const float* from = x + ((b * height + r) * width + s) * in;
                        for (int64_t c = 0; c < in; ++c)
                            for (int64_t o = 0; o < out; ++o)
                                to[o] += from[c] * w[((u * 3 + v) * in + c) * out + o];
                    }
                for (int64_t o = 0; o < out; ++o) to[o] = to[o] > 0 ? to[o] : 0;
            }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)

    def forward(self, x):
        batch, channels, height, width = x.shape
        x = x.contiguous(memory_format=torch.channels_last)
        weight = self.conv.weight.permute(2, 3, 1, 0).contiguous()
        out = weight.shape[-1]
        y = torch.empty(batch, out, height, width, memory_format=torch.channels_last)
        lib.conv(x, weight, self.conv.bias, y, batch, channels, out, height, width)
        return y
