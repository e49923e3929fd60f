"""Elementwise, bound by memory; inputs are never negative, as in KernelBench."""

import torch

ROWS, COLS = 4096, 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(ROWS, COLS)]


def get_init_inputs():
    return []
