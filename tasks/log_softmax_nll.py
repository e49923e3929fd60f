"""Cross entropy against soft targets: log softmax, weighted and summed per token."""

import torch

FAMILY = "loss"
DIFFICULTY = 2
ORIGIN = "DeiT-B with mixup"


class Model(torch.nn.Module):
    def forward(self, logits, targets):
        return -(torch.log_softmax(logits, dim=-1) * targets).sum(dim=-1)


def get_inputs(rows=64, dim=8192):
    return [torch.randn(rows, dim), torch.rand(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "vocabulary of 8192, 64 tokens",
            "inputs": {"rows": 64, "dim": 8192},
        },
        {
            "name": "1000 classes, batch 256",
            "inputs": {"rows": 256, "dim": 1000},
        },
        {
            "name": "gpu: vocabulary of 32000, 256 tokens",
            "inputs": {"rows": 256, "dim": 32000},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 23, "dim": 1231},
            "held_out": True,
        },
    ]
