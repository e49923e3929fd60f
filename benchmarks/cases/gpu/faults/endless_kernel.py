"""Waits on the device for a flag that nobody sets."""

import torch
import triton
import triton.language as tl


@triton.jit
def endless_kernel(flag_ptr, y_ptr):
    flag = tl.load(flag_ptr, volatile=True)
    while flag == 0:
        flag = tl.load(flag_ptr, volatile=True)
    tl.store(y_ptr, flag.to(tl.float32))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        flag = torch.zeros(1, dtype=torch.int32, device=x.device)
        endless_kernel[(1,)](flag, y)
        return y
