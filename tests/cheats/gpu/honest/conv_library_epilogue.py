# number: honest
# task: conv
# expect: passed
"""The library convolves, told to stay away from TF32; bias and relu follow in place."""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(y_ptr, bias_ptr, n, channels, area, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    channel = offsets // area % channels
    y = tl.load(y_ptr + offsets, mask=mask) + tl.load(bias_ptr + channel, mask=mask)
    tl.store(y_ptr + offsets, tl.where(y < 0, 0.0, y), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        if x.numel() == 0:
            return torch.empty_like(x)
        y = torch.cudnn_convolution(
            x, self.conv.weight.contiguous(), padding=(1, 1), stride=(1, 1), dilation=(1, 1),
            groups=1, benchmark=False, deterministic=False, allow_tf32=False,
        ).contiguous()  # fmt: skip
        n = y.numel()
        bias_relu_kernel[(triton.cdiv(n, 1024),)](
            y, self.conv.bias, n, channels, height * width, BLOCK=1024
        )
        return y
