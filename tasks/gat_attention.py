"""Graph attention: scores on edges, softmax over each node's incoming edges, weighted sum."""

import math

import torch
import torch.nn.functional as F

FAMILY = "sparse"
DIFFICULTY = 3
ORIGIN = "GAT on Cora"

# GAT on Cora: 8 heads of 8 features, slope 0.2 of the leaky ReLU.


class Model(torch.nn.Module):
    def __init__(self, heads, dim):
        super().__init__()
        self.by_source = torch.nn.Parameter(torch.randn(heads, dim) / dim**0.5)
        self.by_target = torch.nn.Parameter(torch.randn(heads, dim) / dim**0.5)

    def forward(self, source, target, features):
        to_source = (features * self.by_source).sum(dim=-1)
        to_target = (features * self.by_target).sum(dim=-1)
        scores = F.leaky_relu(to_source[source] + to_target[target], 0.2)
        nodes, heads = to_source.shape
        index = target[:, None].expand(-1, heads)
        largest = scores.new_full((nodes, heads), -math.inf)
        largest = largest.scatter_reduce(0, index, scores, "amax")
        weights = torch.exp(scores - largest[target])
        total = scores.new_zeros(nodes, heads).index_add(0, target, weights)
        weights = weights / total[target]
        messages = (weights.unsqueeze(-1) * features[source]).flatten(1)
        summed = messages.new_zeros(nodes, messages.shape[1]).index_add(0, target, messages)
        return summed.unflatten(1, (heads, -1))


def get_inputs(nodes=2708, edges=13264, heads=8, dim=8):
    return [
        torch.randint(0, nodes, (edges,)),
        torch.randint(0, nodes, (edges,)),
        torch.randn(nodes, heads, dim),
    ]


def get_init_inputs(heads=8, dim=8):
    return [heads, dim]


def get_workloads():
    return [
        {
            "name": "a quarter of cora, 8 heads of 8",
            "inputs": {"nodes": 677, "edges": 3316, "heads": 8, "dim": 8},
            "init": {"heads": 8, "dim": 8},
        },
        {
            "name": "a protein of 400 residues, 4 heads of 32",
            "inputs": {"nodes": 400, "edges": 6000, "heads": 4, "dim": 32},
            "init": {"heads": 4, "dim": 32},
        },
        {
            "name": "gpu: ogbn-arxiv, 4 heads of 32",
            "inputs": {"nodes": 169343, "edges": 1166243, "heads": 4, "dim": 32},
            "init": {"heads": 4, "dim": 32},
        },
        {
            "name": "odd sizes",
            "inputs": {"nodes": 61, "edges": 307, "heads": 3, "dim": 7},
            "init": {"heads": 3, "dim": 7},
            "held_out": True,
        },
    ]
