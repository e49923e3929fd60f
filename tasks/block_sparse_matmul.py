"""A matrix of few dense blocks of 32 by 32, given by their places, times a dense matrix."""

import torch

FAMILY = "sparse"
DIFFICULTY = 3
ORIGIN = "Block-pruned BERT-base"

# BERT-base after block pruning to 10 %: 58 of 576 blocks of a 768 by 768 weight are left.


class Model(torch.nn.Module):
    def __init__(self, block_rows):
        super().__init__()
        self.block_rows = block_rows

    def forward(self, rows, columns, blocks, x):
        side = blocks.shape[-1]
        products = torch.bmm(blocks, x.unflatten(0, (-1, side))[columns])
        total = products.new_zeros(self.block_rows, side, x.shape[1])
        return total.index_add(0, rows, products).flatten(0, 1)


def get_inputs(kept=58, block_rows=24, block_columns=24, side=32, tokens=64):
    places = torch.randperm(block_rows * block_columns)[:kept]
    return [
        places // block_columns,
        places % block_columns,
        torch.randn(kept, side, side),
        torch.randn(block_columns * side, tokens),
    ]


def get_init_inputs(block_rows=24):
    return [block_rows]


def get_workloads():
    return [
        {
            "name": "bert-base output, 64 tokens",
            "inputs": {"kept": 58, "block_rows": 24, "block_columns": 24, "side": 32, "tokens": 64},
            "init": {"block_rows": 24},
        },
        {
            "name": "bert-base mlp in blocks of 16, 32 tokens",
            "inputs": {
                "kept": 400,
                "block_rows": 192,
                "block_columns": 48,
                "side": 16,
                "tokens": 32,
            },
            "init": {"block_rows": 192},
        },
        {
            "name": "gpu: bert-base mlp, 8192 tokens",
            "inputs": {
                "kept": 230,
                "block_rows": 96,
                "block_columns": 24,
                "side": 32,
                "tokens": 8192,
            },
            "init": {"block_rows": 96},
        },
        {
            "name": "odd sizes",
            "inputs": {"kept": 13, "block_rows": 5, "block_columns": 7, "side": 11, "tokens": 29},
            "init": {"block_rows": 5},
            "held_out": True,
        },
    ]
