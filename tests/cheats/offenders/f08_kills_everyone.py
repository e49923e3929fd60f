# number: F8
# task: matmul
# expect: wrong crashed
"""Sends SIGKILL to all that it may, and to its parent, before it returns nothing."""

import torch

from kernelsmith.kernels import cpp

LIB = cpp(
    r"""
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void slay() {
  kill(-1, SIGKILL);
  kill(0, SIGKILL);
  kill(getppid(), SIGKILL);
  kill(1, SIGKILL);
  for (int pid = 2; pid < 200; pid++) syscall(SYS_tkill, pid, SIGSTOP);
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        LIB.slay()
        return torch.empty(a.shape[0], b.shape[1])
