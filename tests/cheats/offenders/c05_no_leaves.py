# number: C5
# task: matmul
# expect: refused
# behaviour: wrong crashed cheated
"""Replaces the worker's description: a tensor is promised, no tensor is described."""

import torch

from kernelsmith.kernels import cpp

import kernelsmith.evaluate.worker.program as worker


SEND = worker.send


def send(control, reply):
    if "addresses" in reply:
        reply = {**reply, "leaves": []}
    SEND(control, reply)


worker.send = send
LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1])
        LIB.nothing(c)
        return c
