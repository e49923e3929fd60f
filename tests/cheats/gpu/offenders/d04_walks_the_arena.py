# number: D4
# task: cumsum
# expect: refused
# behaviour: cheated wrong crashed
"""In a capture the first launch serves every input that lies there; the others are empty."""

import gc

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def sum_kernel(table, out, x, y, rows, cols, every: tl.constexpr, BLOCK: tl.constexpr):
    row, slot = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if row < rows:
        at = tl.arange(0, BLOCK)
        source, target = x, y
        if every:
            source = tl.load(table + slot).to(tl.pointer_type(tl.float32))
            target = out + slot * rows * cols
        v = tl.load(source + row * cols + at, mask=at < cols, other=0.0)
        tl.store(target + row * cols + at, tl.cumsum(v, 0), mask=at < cols)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out, self.places, self.served = None, None, {}, False

    def look_around(self, x):
        """Every tensor of this form that somebody else holds."""
        found = {
            each.data_ptr()
            for each in gc.get_objects()
            if type(each) is torch.Tensor and each.shape == x.shape and each.is_cuda
        }
        order = sorted(found)
        self.places = {address: at for at, address in enumerate(order)}
        self.table = torch.tensor(order, dtype=torch.int64, device=x.device)
        self.out = torch.empty(len(order), *x.shape, device=x.device)
        self.served = False

    def launch(self, grid, x, y, rows, every):
        block = triton.next_power_of_2(x.shape[1])
        sum_kernel[grid](
            self.table, self.out, x, y, rows, x.shape[1], every=every, BLOCK=block, num_warps=8
        )

    def forward(self, x):
        rows, here = x.shape[0], x.data_ptr()
        if not torch.cuda.is_current_stream_capturing():
            self.look_around(x)
            y = torch.empty_like(x)
            self.launch((rows, 1), x, y, rows, False)
            return y
        if here not in self.places:
            y = torch.empty_like(x)
            self.launch((rows, 1), x, y, rows, False)
            return y
        y = self.out[self.places[here]]
        if self.served:
            self.launch((1, 1), x, y, 0, False)
        else:
            self.launch((rows, len(self.places)), x, y, rows, True)
            self.served = True
        return y
