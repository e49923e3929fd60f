"""A product whose left side happens to be lower triangular; the task does not promise that."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.tril(torch.randn(160, 160)), torch.randn(160, 128)]


def get_init_inputs():
    return []
