"""A small convolution with bias and ReLU."""

import torch


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(2, 8, 24, 24)]


def get_init_inputs():
    return [8, 16]
