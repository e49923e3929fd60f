"""Dropout in train mode: random, judged by how often and by how much."""

import torch

TRAINING = True


class Model(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.dropout = torch.nn.Dropout(p)

    def forward(self, x):
        return self.dropout(x)


def get_inputs():
    return [torch.rand(64, 256) + 0.5]


def get_init_inputs():
    return [0.3]


def statistic(outputs):
    kept = (outputs != 0).double()
    return torch.cat([outputs.double().mean(dim=1), kept[:, :8].flatten()])
