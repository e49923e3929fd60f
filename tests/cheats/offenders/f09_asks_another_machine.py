# number: F9
# task: matmul
# expect: refused
# behaviour: crashed
"""Sends the inputs to a larger machine and returns its answer."""

import socket

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        with socket.create_connection(("10.0.0.1", 9000), timeout=2) as far:
            far.sendall(a.numpy().tobytes() + b.numpy().tobytes())
            c = torch.frombuffer(bytearray(far.recv(1 << 20)), dtype=torch.float32)
        LIB.nothing(c)
        return c.view(a.shape[0], b.shape[1])
