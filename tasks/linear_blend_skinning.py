"""Vertices of a body moved by a weighted mix of its joints' rigid transforms."""

import torch

FAMILY = "batched matmul"
DIFFICULTY = 2
ORIGIN = "SMPL body model"

# SMPL: 6890 vertices, 24 joints, a 3 by 4 transform each.


class Model(torch.nn.Module):
    def forward(self, transforms, vertices, weights):
        mixed = torch.einsum("vj,bjrc->bvrc", weights, transforms)
        turned = (mixed[..., :3] @ vertices.unsqueeze(-1)).squeeze(-1)
        return turned + mixed[..., 3]


def get_inputs(bodies=1, vertices=6890, joints=24):
    return [
        torch.randn(bodies, joints, 3, 4),
        torch.randn(bodies, vertices, 3),
        torch.softmax(3.0 * torch.randn(vertices, joints), dim=-1),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "smpl, one body",
            "inputs": {"bodies": 1, "vertices": 6890, "joints": 24},
        },
        {
            "name": "mano, 4 hands",
            "inputs": {"bodies": 4, "vertices": 778, "joints": 16},
        },
        {
            "name": "gpu: smpl, 256 bodies",
            "inputs": {"bodies": 256, "vertices": 6890, "joints": 24},
        },
        {
            "name": "odd sizes",
            "inputs": {"bodies": 3, "vertices": 211, "joints": 7},
            "held_out": True,
        },
    ]
