"""A square product in half precision, bound by arithmetic."""

import torch

SIZE = 4096


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(SIZE, SIZE, dtype=torch.float16) * 0.1 for _ in range(2)]


def get_init_inputs():
    return []
