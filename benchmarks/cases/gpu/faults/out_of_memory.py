"""Asks for more memory than any device has."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        room = torch.empty(1 << 40, dtype=torch.uint8, device=x.device)
        copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, room, x.numel(), BLOCK=1024)
        return room[: x.numel() * 4].view(torch.float32).view(x.shape)
