# number: F8
# task: matmul
# expect: crashed wrong
"""Kills itself when it would be found out, so that the judge takes it for an accident of its own."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <signal.h>
#include <unistd.h>
extern "C" void vanish() { kill(getpid(), SIGKILL); }
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.vanish()
        return torch.empty(a.shape[0], b.shape[1])
