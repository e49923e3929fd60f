"""Divergence of a student's softened distribution from its teacher's, per token."""

import torch

FAMILY = "loss"
DIFFICULTY = 2
ORIGIN = "DistilBERT"

# DistilBERT: temperature 2 over BERT's vocabulary of 30522.


class Model(torch.nn.Module):
    def forward(self, student, teacher):
        student = torch.log_softmax(student / 2.0, dim=-1)
        teacher = torch.log_softmax(teacher / 2.0, dim=-1)
        return 4.0 * (torch.exp(teacher) * (teacher - student)).sum(dim=-1)


def get_inputs(rows=16, classes=30522):
    teacher = 2.0 * torch.randn(rows, classes)
    return [teacher + torch.randn(rows, classes), teacher]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "distilbert, 16 tokens",
            "inputs": {"rows": 16, "classes": 30522},
        },
        {
            "name": "deit-tiny, 256 images",
            "inputs": {"rows": 256, "classes": 1000},
        },
        {
            "name": "gpu: distilbert, 2048 tokens",
            "inputs": {"rows": 2048, "classes": 30522},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 31, "classes": 877},
            "held_out": True,
        },
    ]
