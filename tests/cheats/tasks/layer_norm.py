"""LayerNorm with weight and bias."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return [512]
