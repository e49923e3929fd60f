"""One step of Adafactor: second moments as means of rows and columns, updates clipped by rms."""

import torch

FAMILY = "optimiser"
DIFFICULTY = 3
ORIGIN = "T5-base"
STRUCTURE = "second moments are positive"

# T5-base: 768 by 3072 weights; decay at about the hundredth step, learning rate 0.01.


class Model(torch.nn.Module):
    def forward(self, weight, gradient, rows, columns):
        square = gradient.square() + 1e-6
        rows = 0.975 * rows + 0.025 * square.mean(dim=1)
        columns = 0.975 * columns + 0.025 * square.mean(dim=0)
        scale = torch.rsqrt(rows / rows.mean())[:, None] * torch.rsqrt(columns)
        update = gradient * scale
        rms = torch.sqrt(update.square().mean())
        return weight - 0.01 * update / torch.clamp(rms, min=1.0), rows, columns


def get_inputs(rows=768, columns=768):
    gradient = torch.randn(rows, columns) * (0.5 + torch.rand(rows, 1))
    return [torch.randn(rows, columns), gradient, torch.rand(rows) + 0.1, torch.rand(columns) + 0.1]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "t5-small output, 512 by 512",
            "inputs": {"rows": 512, "columns": 512},
        },
        {
            "name": "t5-base output, a quarter, 768 by 192",
            "inputs": {"rows": 768, "columns": 192},
        },
        {
            "name": "gpu: t5-base mlp, 3072 by 768",
            "inputs": {"rows": 3072, "columns": 768},
        },
        {
            "name": "gpu: t5-xl mlp, 5120 by 2048",
            "inputs": {"rows": 5120, "columns": 2048},
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 53, "columns": 141},
            "held_out": True,
        },
    ]
