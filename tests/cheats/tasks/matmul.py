"""A plain product of two matrices, no weights."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(160, 192), torch.randn(192, 128)]


def get_init_inputs():
    return []
