# number: honest
# task: relu
# expect: passed
"""As many programs as multiprocessors; each walks over the tensor with that stride."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    tiles = tl.cdiv(n, BLOCK)
    first = tl.program_id(0).to(tl.int64)
    for tile in tl.range(first, tiles, tl.num_programs(0)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
        tl.store(y_ptr + offsets, y, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        programs = torch.cuda.get_device_properties(x.device).multi_processor_count
        relu_kernel[(programs,)](x, y, x.numel(), BLOCK=8192, num_warps=8)
        return y
