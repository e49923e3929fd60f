"""One step of AdamW: moments, bias correction, decoupled weight decay."""

import torch

FAMILY = "optimiser"
DIFFICULTY = 2
ORIGIN = "GPT-2 124M"
STRUCTURE = "second moments are not negative"

# GPT-2 124M: the MLP's 768 by 3072, betas 0.9 and 0.95, weight decay 0.1, the tenth step.


class Model(torch.nn.Module):
    def forward(self, weight, gradient, mean, square):
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.95 * square + 0.05 * gradient.square()
        root = torch.sqrt(square / (1.0 - 0.95**10)) + 1e-3
        step = mean / (1.0 - 0.9**10) / root
        return weight - 6e-3 * (step + 0.1 * weight), mean, square


def get_inputs(rows=768, columns=768):
    shape = (rows, columns)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape), torch.rand(shape)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "smollm-135m key, 192 by 576",
            "inputs": {"rows": 192, "columns": 576},
        },
        {
            "name": "bert-base output, 768 by 768",
            "inputs": {"rows": 768, "columns": 768},
        },
        {
            "name": "gpu: gpt-2 124m mlp, 3072 by 768",
            "inputs": {"rows": 3072, "columns": 768},
        },
        {
            "name": "gpu: llama-3 8b up, 14336 by 4096",
            "inputs": {"rows": 14336, "columns": 4096},
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 37, "columns": 131},
            "held_out": True,
        },
    ]
