"""A linear layer with bias, then GELU."""

import torch
import torch.nn.functional as F

FAMILY = "matmul"
DIFFICULTY = 2
ORIGIN = "GPT-2 124M"


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs(rows=256, inputs=48):
    return [torch.randn(rows, inputs)]


def get_init_inputs(inputs=48, outputs=768):
    return [inputs, outputs]


def get_workloads():
    return [
        {
            "name": "patches of 4 by 4 to 768, 256 of them",
            "inputs": {"rows": 256, "inputs": 48},
            "init": {"inputs": 48, "outputs": 768},
        },
        {
            "name": "one head of 64 to 512, 512 tokens",
            "inputs": {"rows": 512, "inputs": 64},
            "init": {"inputs": 64, "outputs": 512},
        },
        {
            "name": "gpu: gpt2 mlp, 2048 tokens",
            "inputs": {"rows": 2048, "inputs": 768},
            "init": {"inputs": 768, "outputs": 3072},
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 37, "inputs": 101},
            "init": {"inputs": 101, "outputs": 203},
            "held_out": True,
        },
    ]
