# number: honest
# task: affine
# expect: passed
"""Half of the rows on a stream of its own, joined with the caller's before the return."""

import torch
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, n, features, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    col = offsets % features
    x = tl.load(x_ptr + offsets, mask=mask)
    weight = tl.load(weight_ptr + col, mask=mask)
    bias = tl.load(bias_ptr + col, mask=mask)
    tl.store(y_ptr + offsets, x * weight + bias, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
        self.side = None

    def _launch(self, x, y):
        n = x.numel()
        affine_kernel[(triton.cdiv(n, 1024),)](
            x, self.weight, self.bias, y, n, x.shape[1], BLOCK=1024
        )

    def forward(self, x):
        if self.side is None:
            self.side = torch.cuda.Stream(x.device)
        x = x.contiguous()
        y = torch.empty_like(x)
        half = x.shape[0] // 2
        here = torch.cuda.current_stream(x.device)
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            self._launch(x[half:], y[half:])
        self._launch(x[:half], y[:half])
        here.wait_stream(self.side)
        return y
