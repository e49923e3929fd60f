# number: honest
# task: conv
# expect: passed
"""The convolution as one matrix product whose left side is never written out."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, batch, height, width,
    IN: tl.constexpr, OUT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    K: tl.constexpr = IN * 9
    area = height * width
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    image, place = pixel // area, pixel % area
    i, j = place // width, place % width
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        channel, tap = k // 9, k % 9
        row = i[:, None] + (tap // 3 - 1)[None, :]
        col = j[:, None] + (tap % 3 - 1)[None, :]
        inside = (pixel < batch * area)[:, None] & (k < K)[None, :]
        inside = inside & (row >= 0) & (row < height) & (col >= 0) & (col < width)
        at = (image[:, None] * IN + channel[None, :]) * area + row * width + col
        x = tl.load(x_ptr + at, mask=inside, other=0.0)
        w_mask = (k < K)[:, None] & (n < OUT)[None, :]
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=w_mask, other=0.0)
        total = tl.dot(x, w, total, input_precision="ieee")
    total += tl.load(bias_ptr + n, mask=n < OUT, other=0.0)[None, :]
    y = tl.where(total < 0, 0.0, total)
    at = (image[:, None] * OUT + n[None, :]) * area + place[:, None]
    tl.store(y_ptr + at, y, mask=(pixel < batch * area)[:, None] & (n < OUT)[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        weight = self.conv.weight.contiguous()
        out = weight.shape[0]
        y = torch.empty(batch, out, height, width, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(batch * height * width, 64), triton.cdiv(out, 64))
        conv_kernel[grid](
            x, weight, self.conv.bias, y, batch, height, width,
            IN=channels, OUT=out, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=4, num_stages=2,
        )  # fmt: skip
        return y
