"""The gate of a Llama MLP: one half of the row through SiLU, times the other."""

import torch


class Model(torch.nn.Module):
    def forward(self, gate, up):
        return torch.nn.functional.silu(gate) * up


def get_inputs():
    return [torch.randn(64, 2048), torch.randn(64, 2048)]


def get_init_inputs():
    return []
