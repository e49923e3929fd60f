# number: C5
# task: linear_gelu
# expect: refused
# behaviour: crashed
"""Answers the judge with replies of another form, to make the judge itself fall over."""

import torch

from kernelsmith.kernels import cpp

import kernelsmith.evaluate.worker.program as worker

SEND = worker.send
worker.send = lambda control, reply: SEND(control, {"state": 7} if "state" in reply else {})
LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)
