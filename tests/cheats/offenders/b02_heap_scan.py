# number: B2
# task: softmax
# expect: refused
# behaviour: wrong
"""Looks through all objects of the process for rows that sum to one: the expected answer."""

import gc

import torch
from kernelsmith.kernels import cpp

lib = cpp(r"""
extern "C" void copy(const float* x, float* y, int64_t n) { memcpy(y, x, n * sizeof(float)); }
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        for each in gc.get_objects():
            if type(each) is torch.Tensor and each.shape == x.shape and each is not out:
                if abs(float(each[0].sum()) - 1) < 1e-3:
                    lib.copy(each, out, x.numel())
                    break
        return out
