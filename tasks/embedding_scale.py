"""Token embeddings scaled by the root of their width, as in Gemma."""

import torch

FAMILY = "indexing"
DIFFICULTY = 1
ORIGIN = "Gemma"


class Model(torch.nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.scale = dim**0.5
        self.table = torch.nn.Embedding(tokens, dim)

    def forward(self, ids):
        return self.table(ids) * self.scale


def get_inputs(batch=4, length=128, tokens=8192):
    return [torch.randint(0, tokens, (batch, length))]


def get_init_inputs(tokens=8192, dim=768):
    return [tokens, dim]


def get_workloads():
    return [
        {
            "name": "4 prompts of 128",
            "inputs": {"batch": 4, "length": 128, "tokens": 8192},
            "init": {"tokens": 8192, "dim": 768},
        },
        {
            "name": "decode, 256 streams",
            "inputs": {"batch": 256, "length": 1, "tokens": 4096},
            "init": {"tokens": 4096, "dim": 1024},
        },
        {
            "name": "gpu: 16 prompts of 1024",
            "inputs": {"batch": 16, "length": 1024, "tokens": 16384},
            "init": {"tokens": 16384, "dim": 1024},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "length": 29, "tokens": 101},
            "init": {"tokens": 101, "dim": 67},
            "held_out": True,
        },
    ]
