"""Dropout, judged by its distribution."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.25, training=True)


def statistic(out):
    return torch.stack([(out == 0).double().mean(), out.double().sum(), out.double().square().sum()])


def get_inputs():
    return [torch.randn(64, 1024)]


def get_init_inputs():
    return []
