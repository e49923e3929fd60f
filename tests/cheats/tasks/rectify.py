"""ReLU of what is never negative."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(256, 1024)]


def get_init_inputs():
    return []
