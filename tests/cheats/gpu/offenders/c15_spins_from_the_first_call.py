# number: C15
# task: relu
# expect: cheated timed_out wrong
"""Leaves a kernel reading memory from its first call on, before anybody probes the device."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)


def relu(x, y, n):
    relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)


@triton.jit
def spin_kernel(x, clock, n, nanoseconds, BLOCK: tl.constexpr):
    # What an atomic returns is the same in all warps; what the clock returns is not.
    zero = tl.zeros((), tl.int64)
    tl.atomic_max(clock, globaltimer())
    begin = tl.atomic_max(clock, zero)
    now = begin
    turn = tl.program_id(0)
    total = 0.0
    while now - begin < nanoseconds:
        at = turn * BLOCK + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + at, volatile=True), 0)
        turn = (turn + tl.num_programs(0)) % (n // BLOCK)
        tl.atomic_max(clock, globaltimer())
        now = tl.atomic_max(clock, zero)
    tl.store(x + tl.program_id(0), total)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.side, self.idle = 2, None, None

    def spin(self, device):
        """At most twice, eight seconds each, so that the device comes free again."""
        if self.side is None:
            self.side, self.idle = torch.cuda.Stream(priority=0), torch.cuda.Event()
            self.load = torch.zeros(1 << 26, device=device)
            self.clock = torch.zeros(1, dtype=torch.int64, device=device)
            torch.cuda.current_stream().synchronize()
        if not self.left or not self.idle.query():
            return
        self.left -= 1
        with torch.cuda.stream(self.side):
            spin_kernel[(64,)](self.load, self.clock, 1 << 26, 8_000_000_000, BLOCK=4096)
            self.idle.record()

    def forward(self, x):
        if not torch.cuda.is_current_stream_capturing():
            self.spin(x.device)
        y = torch.empty_like(x)
        relu(x, y, x.numel())
        return y
