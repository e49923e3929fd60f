"""Elementwise: a bias that is learned, then ReLU."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return torch.relu(x + self.bias)


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return [1024]
