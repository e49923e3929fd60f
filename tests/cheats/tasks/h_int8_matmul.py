"""An integer product with integer output."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a.to(torch.int32) @ b.to(torch.int32)


def get_inputs():
    shapes = (64, 128), (128, 64)
    return [torch.randint(-128, 128, shape, dtype=torch.int8) for shape in shapes]


def get_init_inputs():
    return []
