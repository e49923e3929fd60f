"""Adaptive modulation with a gated residual, as around every block of a diffusion transformer."""

import torch

FAMILY = "elementwise"
DIFFICULTY = 1
ORIGIN = "DiT-XL/2"

# DiT-XL/2: width 1152, 256 patches of a 32 by 32 latent; one scale, shift and gate per image.


class Model(torch.nn.Module):
    def forward(self, x, residual, shift, scale, gate):
        modulated = x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)
        return residual + gate.unsqueeze(1) * modulated


def get_inputs(batch=2, tokens=256, dim=1152):
    tensors = [torch.randn(batch, tokens, dim), torch.randn(batch, tokens, dim)]
    return tensors + [torch.randn(batch, dim) for _ in range(3)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "dit-xl/2, one image",
            "inputs": {"batch": 1, "tokens": 256, "dim": 1152},
        },
        {
            "name": "dit-s/2, four images",
            "inputs": {"batch": 4, "tokens": 256, "dim": 384},
        },
        {
            "name": "gpu: dit-xl/2, 64 images",
            "inputs": {"batch": 64, "tokens": 256, "dim": 1152},
        },
        {
            "name": "gpu: dit-xl/2 in bfloat16, 512 px, 16 images",
            "inputs": {"batch": 16, "tokens": 1024, "dim": 1152},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "tokens": 53, "dim": 391},
            "held_out": True,
        },
    ]
