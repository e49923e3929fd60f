"""Elementwise on a transposed view: eager's output is dense, but not contiguous."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(x.transpose(1, 2)) * 2


def get_inputs():
    return [torch.randn(4, 48, 80)]


def get_init_inputs():
    return []
