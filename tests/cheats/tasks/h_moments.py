"""Mean and variance by name: a dict, with a list in it."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0)
        return {"mean": mean, "variance": variance, "ends": [x[:, 0] * 2, x[:, -1] * 2]}


def get_inputs():
    return [torch.randn(256, 400) + 1]


def get_init_inputs():
    return []
