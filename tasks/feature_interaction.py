"""Dot products of all pairs of a sample's feature vectors, beside its dense features."""

import torch

FAMILY = "batched matmul"
DIFFICULTY = 2
ORIGIN = "DLRM"

# DLRM on Criteo: 26 sparse features and 1 dense one, vectors of 64 (128 in MLPerf).


class Model(torch.nn.Module):
    def forward(self, features):
        products = torch.bmm(features, features.transpose(1, 2))
        count = features.shape[1]
        rows, columns = torch.tril_indices(count, count, -1, device=features.device)
        return torch.cat((features[:, 0], products[:, rows, columns]), dim=1)


def get_inputs(batch=256, features=27, dim=64):
    return [torch.randn(batch, features, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "dlrm on criteo, batch 256",
            "inputs": {"batch": 256, "features": 27, "dim": 64},
        },
        {
            "name": "small dlrm, batch 512",
            "inputs": {"batch": 512, "features": 9, "dim": 16},
        },
        {
            "name": "gpu: dlrm in mlperf, batch 16384",
            "inputs": {"batch": 16384, "features": 27, "dim": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 31, "features": 11, "dim": 29},
            "held_out": True,
        },
    ]
