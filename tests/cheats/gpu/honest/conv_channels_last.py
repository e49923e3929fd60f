# number: honest
# task: conv
# expect: passed
"""Works in channels-last order, tap by tap, and returns its output like that: dense."""

import torch
import triton
import triton.language as tl


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, batch, inputs, outputs, height, width,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    area = height * width
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    place = pixel % area
    i, j = place // width, place % width
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tap in range(9):
        down, right = tap // 3 - 1, tap % 3 - 1
        row, col = i + down, j + right
        there = (row >= 0) & (row < height) & (col >= 0) & (col < width)
        there = there & (pixel < batch * area)
        for start in range(0, inputs, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            x_at = (pixel + down * width + right)[:, None] * inputs + k[None, :]
            x = tl.load(x_ptr + x_at, mask=there[:, None] & (k < inputs)[None, :], other=0.0)
            w_at = (tap * inputs + k)[:, None] * outputs + n[None, :]
            w_mask = (k < inputs)[:, None] & (n < outputs)[None, :]
            w = tl.load(w_ptr + w_at, mask=w_mask, other=0.0)
            total = tl.dot(x, w, total, input_precision="ieee")
    total += tl.load(bias_ptr + n, mask=n < outputs, other=0.0)[None, :]
    y_mask = (pixel < batch * area)[:, None] & (n < outputs)[None, :]
    tl.store(
        y_ptr + pixel[:, None] * outputs + n[None, :], tl.where(total < 0, 0.0, total), mask=y_mask
    )


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        x = x.contiguous(memory_format=torch.channels_last)
        batch, channels, height, width = x.shape
        weight = self.conv.weight.permute(2, 3, 1, 0).contiguous()
        out = weight.shape[-1]
        y = torch.empty(batch, height, width, out, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(batch * height * width, 64), triton.cdiv(out, 64))
        conv_kernel[grid](
            x, weight, self.conv.bias, y, batch, channels, out, height, width,
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=8, num_stages=2,
        )  # fmt: skip
        return y.permute(0, 3, 1, 2)
