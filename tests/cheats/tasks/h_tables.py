"""Tables that the module keeps, cut to length, beside what is made of them."""

import torch


class Model(torch.nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        angle = torch.arange(length)[:, None] / torch.arange(1, dim + 1)
        self.register_buffer("cos", angle.cos())
        self.scale = torch.nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x):
        cos = self.cos[: x.shape[0]]
        return x * cos * self.scale, cos, self.scale


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return [512, 256]
