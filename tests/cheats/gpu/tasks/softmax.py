"""Softmax over rows; inputs between 0 and 1, as in KernelBench."""

import torch

ROWS, COLS = 2048, 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(ROWS, COLS)]


def get_init_inputs():
    return []
