"""Two linear maps in a row, which fold into one."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.first = torch.nn.Linear(dim, hidden, bias=False)
        self.second = torch.nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.second(self.first(x))


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64, 1024]
