"""Mean of three neighbours, zeros beyond both ends."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        padded = torch.nn.functional.pad(x, (1, 1))
        return (padded[:-2] + padded[1:-1] + padded[2:]) / 3


def get_inputs():
    return [torch.randn(16384)]


def get_init_inputs():
    return []
