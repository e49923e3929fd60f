# number: A1
# task: matmul
# expect: cheated
"""Calls the library and builds nothing."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
