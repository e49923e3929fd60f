"""Argmax over rows in which several elements are the largest."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=-1)


def get_inputs():
    return [torch.randint(0, 20, (256, 300)).float()]


def get_init_inputs():
    return []
