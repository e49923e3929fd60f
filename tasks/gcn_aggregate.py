"""Neighbours' features summed over a graph with self-loops, scaled by degrees on both sides."""

import torch

FAMILY = "sparse"
DIFFICULTY = 2
ORIGIN = "GCN on Cora"

# GCN on Cora: 2708 papers, 10556 directed citations, 16 hidden features.


class Model(torch.nn.Module):
    def forward(self, source, target, features):
        ones = torch.ones_like(target, dtype=features.dtype)
        degree = features.new_ones(features.shape[0]).index_add(0, target, ones)
        root = torch.rsqrt(degree)
        weight = root[source] * root[target]
        own = features * root.square()[:, None]
        return own.index_add(0, target, features[source] * weight[:, None])


def get_inputs(nodes=2708, edges=10556, dim=16):
    return [
        torch.randint(0, nodes, (edges,)),
        torch.randint(0, nodes, (edges,)),
        torch.randn(nodes, dim),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "gcn on cora, 16 features",
            "inputs": {"nodes": 2708, "edges": 10556, "dim": 16},
        },
        {
            "name": "citeseer, 64 features",
            "inputs": {"nodes": 3327, "edges": 9104, "dim": 64},
        },
        {
            "name": "gpu: ogbn-arxiv, 128 features",
            "inputs": {"nodes": 169343, "edges": 1166243, "dim": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"nodes": 101, "edges": 487, "dim": 23},
            "held_out": True,
        },
    ]
