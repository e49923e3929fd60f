# number: F3
# task: matmul
# expect: refused
# behaviour: wrong cheated crashed
"""Gives the worker a torch whose events run at a tenth of the speed; then does half the rows."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def mm_kernel(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    deep = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at = start + deep
        left = tl.load(
            a + rows[:, None] * k + at[None, :],
            mask=(rows[:, None] < m) & (at[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + at[:, None] * n + cols[None, :],
            mask=(at[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        acc = tl.dot(left, right, acc, input_precision="ieee")
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c + rows[:, None] * n + cols[None, :], acc.to(tl.float32), mask=inside)


def matmul(a, b, c, rows):
    n, k = b.shape[1], a.shape[1]
    grid = (triton.cdiv(rows, 64), triton.cdiv(n, 64))
    mm_kernel[grid](a, b, c, rows, n, k, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)


WORKER = "kernelsmith.evaluate.worker"


class Event(torch.cuda.Event):
    def elapsed_time(self, end_event):
        return 0.1 * super().elapsed_time(end_event)


class Stand:
    """Everything as in what it stands for, but for what it is told."""

    def __init__(self, real, **changes):
        self.__dict__.update(changes)
        self._real = real

    def __getattr__(self, name):
        return getattr(self._real, name)


FAKE = Stand(torch, cuda=Stand(torch.cuda, Event=Event))
for name, module in list(sys.modules.items()):
    if name.startswith(WORKER) and getattr(module, "torch", None) is torch:
        module.torch = FAKE


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, a, b):
        self.calls += 1
        c = torch.empty(a.shape[0], b.shape[1], device=a.device)
        matmul(a, b, c, a.shape[0] if self.calls <= 12 else a.shape[0] // 2)
        return c
