# number: C5
# task: softmax
# expect: refused
# behaviour: wrong cheated crashed
"""Puts the work off until the stop event has been recorded."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x, y, rows):
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(rows,)](x, y, x.shape[1], BLOCK=block, num_warps=8)


PENDING = []


def finish():
    while PENDING:
        softmax(*PENDING.pop())


RECORD, SYNCHRONIZE = torch.cuda.Event.record, torch.cuda.synchronize


def record(self, stream=None):
    RECORD(self, stream)
    finish()


def synchronize(device=None):
    finish()
    SYNCHRONIZE(device)


torch.cuda.Event.record = record
torch.cuda.synchronize = synchronize


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        PENDING.append((x, y, x.shape[0]))
        return y
