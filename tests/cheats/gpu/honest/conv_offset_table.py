# number: honest
# task: conv
# expect: passed
"""Where each term of the sum lies comes from a table, built at the first call from shapes alone."""

import torch
import triton
import triton.language as tl


def offset_table(channels, height, width, device):
    """Offset, row step and column step of every term of one output element."""
    k = torch.arange(channels * 9, device=device, dtype=torch.int32)
    down, right = k % 9 // 3 - 1, k % 3 - 1
    offset = k // 9 * (height * width) + down * width + right
    return torch.stack([offset, down, right]).to(torch.int32).contiguous()


@triton.jit
def conv_kernel(
    x_ptr, w_ptr, bias_ptr, table_ptr, y_ptr, batch, inputs, outputs, height, width,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    K = inputs * 9
    area = height * width
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    image, place = pixel // area, pixel % area
    i, j = place // width, place % width
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    corner = image * inputs * area + place
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        offset = tl.load(table_ptr + k, mask=k < K, other=0)
        row = i[None, :] + tl.load(table_ptr + K + k, mask=k < K, other=0)[:, None]
        col = j[None, :] + tl.load(table_ptr + 2 * K + k, mask=k < K, other=0)[:, None]
        inside = (k < K)[:, None] & (pixel < batch * area)[None, :]
        inside = inside & (row >= 0) & (row < height) & (col >= 0) & (col < width)
        x = tl.load(x_ptr + corner[None, :] + offset[:, None], mask=inside, other=0.0)
        w_mask = (n < outputs)[:, None] & (k < K)[None, :]
        w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=w_mask, other=0.0)
        total = tl.dot(w, x, total, input_precision="ieee")
    total += tl.load(bias_ptr + n, mask=n < outputs, other=0.0)[:, None]
    y = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    at = (image[None, :] * outputs + n[:, None]) * area + place[None, :]
    tl.store(y_ptr + at, y, mask=(n < outputs)[:, None] & (pixel < batch * area)[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.tables = {}

    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        key = (channels, height, width, x.device)
        if key not in self.tables:
            self.tables[key] = offset_table(*key)
        weight = self.conv.weight.contiguous()
        out = weight.shape[0]
        y = torch.empty(batch, out, height, width, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(batch * height * width, 64), triton.cdiv(out, 64))
        conv_kernel[grid](
            x, weight, self.conv.bias, self.tables[key], y, batch, channels, out, height, width,
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=4, num_stages=3,
        )  # fmt: skip
        return y
