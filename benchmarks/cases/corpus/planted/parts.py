"""What the planted modules share: a base class, a helper, a registry, a config."""

from dataclasses import dataclass

import torch
from torch import nn

WIDTH = 32
LAYERS = {}


def register(name):
    def keep(cls):
        LAYERS[name] = cls
        return cls

    return keep


def scaled(x, factor=2.0):
    return x * factor


class Residual(nn.Module):
    def inner(self, x):
        raise NotImplementedError

    def forward(self, x):
        return x + self.inner(x)


@dataclass
class BlockConfig:
    hidden_size: int = 64
    intermediate_size: int = 128
    hidden_act: str = "gelu"
    eps: float = 1e-6


class RootNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
