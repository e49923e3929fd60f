"""Cosine similarity of pairs of rows."""

import torch

FAMILY = "reduction"
DIFFICULTY = 1
ORIGIN = "Sentence-BERT"


class Model(torch.nn.Module):
    def forward(self, a, b):
        lengths = torch.linalg.vector_norm(a, dim=-1) * torch.linalg.vector_norm(b, dim=-1)
        return (a * b).sum(dim=-1) / lengths


def get_inputs(rows=1024, dim=768):
    return [torch.randn(rows, dim), torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "sentence pairs, 1024",
            "inputs": {"rows": 1024, "dim": 768},
        },
        {
            "name": "clip pairs, 512",
            "inputs": {"rows": 512, "dim": 512},
        },
        {
            "name": "gpu: sentence pairs, 8192",
            "inputs": {"rows": 8192, "dim": 768},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 47, "dim": 301},
            "held_out": True,
        },
    ]
