# number: honest
# task: h_conv
# expect: passed
"""Convolution as a product with unrolled patches, in scratch memory that it keeps."""

import torch

from kernelsmith.kernels import cpp

lib = cpp("""
extern "C" void conv(const float* x, const float* w, const float* bias, float* patches, float* y,
                     int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width) {
    const int64_t area = height * width, depth = in * 9;
    for (int64_t b = 0; b < batch; ++b, x += in * area, y += out * area) {
        for (int64_t c = 0; c < in; ++c)
            for (int64_t u = -1; u <= 1; ++u)
                for (int64_t v = -1; v <= 1; ++v) {
                    float* row = patches + ((c * 3 + u + 1) * 3 + v + 1) * area;
                    for (int64_t i = 0; i < height; ++i)
                        for (int64_t j = 0; j < width; ++j) {
                            const bool inside = i + u >= 0 && i + u < height && j + v >= 0 && j + v < width;
                            row[i * width + j] = inside ? x[c * area + (i + u) * width + j + v] : 0;
                        }
                }
        for (int64_t o = 0; o < out; ++o) {
            float* row = y + o * area;
            std::fill(row, row + area, bias[o]);
            for (int64_t d = 0; d < depth; ++d)
                for (int64_t i = 0; i < area; ++i) row[i] += w[o * depth + d] * patches[d * area + i];
            for (int64_t i = 0; i < area; ++i) row[i] = std::max(row[i], 0.0f);
        }
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
        self._workspace = {}

    def forward(self, x):
        batch, channels, height, width = x.shape
        key = (channels, height, width)
        if key not in self._workspace:
            self._workspace[key] = torch.empty(channels * 9, height * width)
        weight = self.conv.weight
        y = torch.empty(batch, weight.shape[0], height, width)
        lib.conv(
            x.contiguous(),
            weight,
            self.conv.bias,
            self._workspace[key],
            y,
            batch,
            channels,
            weight.shape[0],
            height,
            width,
        )
        return y
