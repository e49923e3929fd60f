# number: A14
# task: conv
# expect: wrong
"""Lays its weights out for the kernel at the first call, and never again."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv_kernel(x, w, bias, y, pixels, H, W, C: tl.constexpr, BM: tl.constexpr):
    """A product per tap; ``w`` lies as taps, input channels, output channels."""
    p = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, C)
    image, within = p // (H * W), p % (H * W)
    row, col = within // W, within % W
    acc = tl.zeros((BM, C), tl.float32)
    for tap in range(9):
        r, s = row + tap // 3 - 1, col + tap % 3 - 1
        inside = (p < pixels) & (r >= 0) & (r < H) & (s >= 0) & (s < W)
        at = (image * C * H * W + r * W + s)[:, None] + (c * H * W)[None, :]
        left = tl.load(x + at, mask=inside[:, None], other=0.0)
        right = tl.load(w + tap * C * C + c[:, None] * C + c[None, :])
        acc = tl.dot(left, right, acc, input_precision="ieee")
    acc = tl.maximum(acc + tl.load(bias + c)[None, :], 0.0)
    to = (image * C * H * W + within)[:, None] + (c * H * W)[None, :]
    tl.store(y + to, acc, mask=(p < pixels)[:, None])


def packed(weight):
    return weight.detach().permute(2, 3, 1, 0).contiguous()


def conv_relu(x, w, bias):
    count, channels, height, width = x.shape
    pixels = count * height * width
    y = torch.empty_like(x)
    conv_kernel[(triton.cdiv(pixels, 64),)](
        x, w, bias, y, pixels, height, width, C=channels, BM=64, num_warps=4
    )
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.w = None

    def forward(self, x):
        if self.w is None:
            self.w = packed(self.conv.weight)
        return conv_relu(x, self.w, self.conv.bias)
