# number: F9
# task: matmul
# expect: refused
# behaviour: crashed
"""Installs a faster library at run time and calls that."""

import subprocess
import sys

import torch

from kernelsmith.kernels import cpp

LIB = cpp('extern "C" void nothing(float* x) { x[0] = 0; }')


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        subprocess.run([sys.executable, "-m", "pip", "install", "fastgemm"], check=True)
        import fastgemm

        return fastgemm.matmul(a, b)
