"""Rows scaled to length one, as embeddings are before a search."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 1
ORIGIN = "Sentence-BERT"


class Model(torch.nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def get_inputs(rows=1024, dim=768):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "sentence embeddings, 1024",
            "inputs": {"rows": 1024, "dim": 768},
        },
        {
            "name": "clip embeddings, 2048",
            "inputs": {"rows": 2048, "dim": 512},
        },
        {
            "name": "gpu: embeddings, 16384",
            "inputs": {"rows": 16384, "dim": 768},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 53, "dim": 387},
            "held_out": True,
        },
    ]
