# number: honest
# task: argmax
# expect: passed
"""A row in registers and the library's argmax, ties to the left as torch has them."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + col, mask=col < columns, other=-float("inf"))
    x = tl.where(x != x, float("inf"), x)
    tl.store(y_ptr + row, tl.argmax(x, axis=0, tie_break_left=True).to(tl.int64))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device, dtype=torch.int64)
        argmax_kernel[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return y
