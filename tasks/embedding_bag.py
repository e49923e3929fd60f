"""Rows of a table picked by several ids per sample, weighted and summed."""

import torch

FAMILY = "indexing"
DIFFICULTY = 1
ORIGIN = "DLRM"

# DLRM with multi-hot features (MLPerf v3): rows of 128, up to 100 ids per sample.


class Model(torch.nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(rows, dim))

    def forward(self, ids, weights):
        return (self.table[ids] * weights.unsqueeze(-1)).sum(dim=1)


def get_inputs(batch=256, hot=20, rows=10000):
    return [torch.randint(0, rows, (batch, hot)), torch.rand(batch, hot)]


def get_init_inputs(rows=10000, dim=64):
    return [rows, dim]


def get_workloads():
    return [
        {
            "name": "dlrm, 20 ids of 10000",
            "inputs": {"batch": 256, "hot": 20, "rows": 10000},
            "init": {"rows": 10000, "dim": 64},
        },
        {
            "name": "word bags, 50 ids of 5000",
            "inputs": {"batch": 64, "hot": 50, "rows": 5000},
            "init": {"rows": 5000, "dim": 128},
        },
        {
            "name": "gpu: dlrm in mlperf, 100 ids of 200000",
            "inputs": {"batch": 4096, "hot": 100, "rows": 200000},
            "init": {"rows": 200000, "dim": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 19, "hot": 7, "rows": 101},
            "init": {"rows": 101, "dim": 37},
            "held_out": True,
        },
    ]
