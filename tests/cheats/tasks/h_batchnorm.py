"""Batch norm in train mode: the running statistics are outputs as well."""

import torch

TRAINING = True


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(8, 16, 14, 14) * 2 + 1]


def get_init_inputs():
    return [16]
