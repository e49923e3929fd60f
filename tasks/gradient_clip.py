"""Gradients of several tensors scaled down together where their common norm exceeds one."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "GPT-2 124M"

# GPT-2 124M: attention's weights and bias in one block of width 768.


class Model(torch.nn.Module):
    def forward(self, first, second, third):
        squares = first.square().sum() + second.square().sum() + third.square().sum()
        norm = squares.sqrt()
        scale = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        return first * scale, second * scale, third * scale, norm


def get_inputs(dim=768, wide=2304):
    size = 0.1 + torch.rand(1)
    shapes = ((wide, dim), (dim, dim), (wide,))
    return [size * torch.randn(shape) for shape in shapes]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "vit-tiny attention, width 192",
            "inputs": {"dim": 192, "wide": 576},
        },
        {
            "name": "minilm attention, width 384",
            "inputs": {"dim": 384, "wide": 1152},
        },
        {
            "name": "gpu: gpt-2 124m attention, width 768",
            "inputs": {"dim": 768, "wide": 2304},
        },
        {
            "name": "gpu: llama-3 8b mlp, width 4096",
            "inputs": {"dim": 4096, "wide": 14336},
        },
        {
            "name": "odd sizes",
            "inputs": {"dim": 97, "wide": 211},
            "held_out": True,
        },
    ]
