"""Squared distances between points; all the work must be the candidate's own."""

import torch

LIBRARY = "none"


class Model(torch.nn.Module):
    def forward(self, a, b):
        return (a[:, None, :] - b[None, :, :]).square().sum(-1)


def get_inputs():
    return [torch.randn(128, 24), torch.randn(96, 24)]


def get_init_inputs():
    return []
