"""Rows of a table."""

import torch

ROWS, DIM, COUNT = 50000, 256, 8192


class Model(torch.nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.table = torch.nn.Embedding(rows, dim)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, ROWS, (COUNT,))]


def get_init_inputs():
    return [ROWS, DIM]
