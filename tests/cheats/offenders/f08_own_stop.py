# number: F8
# task: matmul
# expect: crashed timed_out wrong
"""Stops itself in the middle of the launch, so that the judge's freezing has nothing to wait for."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <signal.h>
#include <unistd.h>
extern "C" void halt() { kill(getpid(), SIGSTOP); }
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.halt()
        return torch.empty(a.shape[0], b.shape[1])
