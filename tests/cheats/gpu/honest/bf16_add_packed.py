# number: honest
# task: bf16_add
# expect: passed
"""Two sums per instruction, in PTX: x times one plus y, rounded once."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    z = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 one;
            mov.b32 one, 0x3f803f80;
            fma.rn.bf16x2 $0, $1, one, $2;
        }
        """,
        "=r,r,r", [x, y], dtype=tl.bfloat16, is_pure=True, pack=2,
    )  # fmt: skip
    tl.store(z_ptr + offsets, z, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        n = x.numel()
        add_kernel[(triton.cdiv(n, 2048),)](x, y, z, n, BLOCK=2048)
        return z
