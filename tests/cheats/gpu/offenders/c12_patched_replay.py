# number: C12
# task: relu
# expect: refused
# behaviour: wrong cheated crashed
"""Keeps its work out of the graph and does it when somebody waits for the replay."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)


def relu(x, y, n):
    relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)


CAPTURED, WAITING = [], []


def finish():
    while WAITING:
        relu(*WAITING.pop())


def replay(self):
    REPLAY(self)
    WAITING.extend(CAPTURED)


def synchronize(device=None):
    finish()
    SYNCHRONIZE(device)


REPLAY, SYNCHRONIZE = torch.cuda.CUDAGraph.replay, torch.cuda.synchronize
torch.cuda.CUDAGraph.replay = replay
torch.cuda.synchronize = synchronize


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        job = (x, y, x.numel())
        if torch.cuda.is_current_stream_capturing():
            CAPTURED.append(job)
        else:
            relu(*job)
        return y
