"""Softmax in half precision; eager rounds once, at the end."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 256) * 3]


def get_init_inputs():
    return []


def get_workloads():
    return [{"name": "bfloat16", "dtype": "bfloat16"}]
