"""Sigmoid focal loss of every anchor over all classes: easy background hardly counts."""

import torch
import torch.nn.functional as F

FAMILY = "loss"
DIFFICULTY = 2
ORIGIN = "RetinaNet"

# RetinaNet on COCO: 80 classes, alpha 0.25, gamma 2; label 80 is background.


class Model(torch.nn.Module):
    def forward(self, logits, labels):
        targets = labels[:, None] == torch.arange(logits.shape[1], device=logits.device)
        signed = torch.where(targets, logits, -logits)
        weight = torch.where(targets, 0.25, 0.75).to(logits.dtype)
        missing = torch.sigmoid(-signed)
        return (-weight * missing.square() * F.logsigmoid(signed)).sum(dim=-1)


def get_inputs(anchors=2048, classes=80):
    return [torch.randn(anchors, classes), torch.randint(0, classes + 1, (anchors,))]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "retinanet, 2048 anchors",
            "inputs": {"anchors": 2048, "classes": 80},
        },
        {
            "name": "pascal voc, 4096 anchors",
            "inputs": {"anchors": 4096, "classes": 20},
        },
        {
            "name": "gpu: retinanet at 800 px, 120000 anchors",
            "inputs": {"anchors": 120000, "classes": 80},
        },
        {
            "name": "odd sizes",
            "inputs": {"anchors": 211, "classes": 13},
            "held_out": True,
        },
    ]
