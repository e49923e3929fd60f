"""Scores of an image's proposals from best to worst, with where they came from."""

import torch

FAMILY = "sorting"
DIFFICULTY = 2
ORIGIN = "Faster R-CNN"

# Faster R-CNN with FPN: 1000 proposals per level and image, before suppression.


class Model(torch.nn.Module):
    def forward(self, logits):
        return torch.sort(torch.sigmoid(logits), dim=-1, descending=True)


def index_scores(model, logits):
    return {1: (torch.sigmoid(logits), 1)}


def get_inputs(images=4, proposals=1000):
    return [torch.randn(images, proposals)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "faster r-cnn, 4 images, 1000 proposals",
            "inputs": {"images": 4, "proposals": 1000},
        },
        {
            "name": "detr, 64 images, 100 queries",
            "inputs": {"images": 64, "proposals": 100},
        },
        {
            "name": "gpu: faster r-cnn, 64 images, 16384 anchors",
            "inputs": {"images": 64, "proposals": 16384},
        },
        {
            "name": "odd sizes",
            "inputs": {"images": 7, "proposals": 237},
            "held_out": True,
        },
    ]
