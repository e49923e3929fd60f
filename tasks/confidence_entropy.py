"""What a classifier's logits say: the best class, its probability, and the entropy of them all."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "ViT-B/16"

# ViT-B/16 on ImageNet: 1000 classes; GPT-2: a vocabulary of 50257.


class Model(torch.nn.Module):
    def forward(self, logits):
        probabilities = torch.softmax(logits, dim=-1)
        confidence, label = probabilities.max(dim=-1)
        entropy = -(probabilities * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
        return confidence, label, entropy


def index_scores(model, logits):
    return {1: (logits, 1)}


def get_inputs(rows=256, classes=1000):
    return [2.0 * torch.randn(rows, classes)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "vit-b/16, 256 images",
            "inputs": {"rows": 256, "classes": 1000},
        },
        {
            "name": "gpt-2, 8 tokens",
            "inputs": {"rows": 8, "classes": 50257},
        },
        {
            "name": "gpu: vit-b/16 on imagenet-21k, 1024 images",
            "inputs": {"rows": 1024, "classes": 21843},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 29, "classes": 733},
            "held_out": True,
        },
    ]
