"""Halves of its input as views, one of them stretched, and their product."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        even, odd = x[:, ::2], x[:, 1::2]
        return even, odd * even, x[:, :1].expand(-1, 8)


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return []
