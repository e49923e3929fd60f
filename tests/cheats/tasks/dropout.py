"""Dropout, judged by its distribution."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.25, training=True)


def statistic(out):
    dropped = (out == 0).double()
    return torch.cat([dropped[0, :32], dropped.mean()[None], out.double().sum()[None]])


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
