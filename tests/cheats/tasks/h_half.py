"""SiLU with a learned scale in both half precisions."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x):
        return torch.nn.functional.silu(x) * self.scale


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return [512]


def get_workloads():
    return [
        {"name": "bfloat16", "dtype": "bfloat16"},
        {"name": "float16", "dtype": "float16"},
    ]
