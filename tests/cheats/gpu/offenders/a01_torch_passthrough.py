# number: A1
# task: relu
# expect: cheated
"""Calls torch; there is no kernel at all."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
