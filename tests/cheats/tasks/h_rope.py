"""Rotary position embedding; the angles are computed in every call."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        length, half = x.shape[-2], self.dim // 2
        frequency = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
        angle = torch.arange(length, dtype=x.dtype)[:, None] * frequency
        first, second = x[..., :half], x[..., half:]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def get_inputs():
    return [torch.randn(4, 4, 64, 32)]


def get_init_inputs():
    return [32]
