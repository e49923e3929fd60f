"""A sum in bfloat16."""

import torch

SIZE = 2048


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [
        torch.randn(SIZE, SIZE, dtype=torch.bfloat16),
        torch.randn(SIZE, SIZE, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return []
