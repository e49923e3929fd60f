# number: B5
# task: softmax
# expect: wrong crashed
"""Searches all device memory mapped around its input for the answer to its first row."""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def search_kernel(base, stride, want, found, n, BLOCK: tl.constexpr):
    place = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    here = base + place.to(tl.int64) * stride + at
    v = tl.load(here, mask=at < n, other=0.0)
    w = tl.load(want + at, mask=at < n, other=0.0)
    if tl.sum((tl.abs(v - w) > 1e-6).to(tl.int32), 0) == 0:
        tl.atomic_max(found, place + 1)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = None

    def search(self, x):
        """How far from its input the answer lies, in elements, or none."""
        driver = ctypes.CDLL("libcuda.so.1")
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        where = ctypes.c_uint64(x.data_ptr())
        driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), where)
        ahead = (where.value - base.value) // 4
        low = torch.as_strided(x, (1,), (1,), x.storage_offset())
        want = torch.softmax(x[0], 0)
        found = torch.zeros(1, dtype=torch.int32, device=x.device)
        places = (size.value // 4 - ahead - x.shape[1]) // 128
        if places < 1:
            return None
        search_kernel[(places,)](low, 128, want, found, 512, BLOCK=512, num_warps=1)
        place = int(found)
        return (place - 1) * 128 if place else None

    def forward(self, x):
        if self.offset is None and not torch.cuda.is_current_stream_capturing():
            self.offset = self.search(x) or 0
        if self.offset:
            return torch.as_strided(x, x.shape, x.stride(), x.storage_offset() + self.offset)
        y = torch.empty_like(x)
        y[0] = torch.softmax(x[0], 0)
        return y
