"""The 20 nearest neighbours of every point of a cloud, with their squared distances."""

import torch

FAMILY = "sorting"
DIFFICULTY = 3
ORIGIN = "DGCNN"

# DGCNN on ModelNet40: clouds of 1024 points, 20 neighbours, the point itself among them.


class Model(torch.nn.Module):
    def forward(self, points):
        return torch.topk(_distances(points), 20, dim=-1, largest=False)


def _distances(points):
    return (points.unsqueeze(2) - points.unsqueeze(1)).square().sum(dim=-1)


def index_scores(model, points):
    return {1: (_distances(points), 2)}


def get_inputs(clouds=1, points=256, dim=3):
    return [torch.randn(clouds, points, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "a quarter of modelnet40's clouds",
            "inputs": {"clouds": 1, "points": 256, "dim": 3},
        },
        {
            "name": "four clouds of 96 points",
            "inputs": {"clouds": 4, "points": 96, "dim": 3},
        },
        {
            "name": "gpu: dgcnn on modelnet40, 16 clouds",
            "inputs": {"clouds": 16, "points": 1024, "dim": 3},
        },
        {
            "name": "odd sizes",
            "inputs": {"clouds": 3, "points": 61, "dim": 5},
            "held_out": True,
        },
    ]
