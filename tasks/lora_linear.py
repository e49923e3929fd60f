"""A linear layer with a low-rank adapter of rank 16 beside it."""

import torch

FAMILY = "matmul"
DIFFICULTY = 2
ORIGIN = "Llama-3 8B with LoRA"

# Llama-3 8B's q_proj is 4096 by 4096 without bias; LoRA of rank 16, scaled by 2.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs, bias=False)
        self.down = torch.nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.up = torch.nn.Parameter(torch.randn(outputs, rank) / rank**0.5)

    def forward(self, x):
        return self.linear(x) + 2.0 * (x @ self.down.T) @ self.up.T


def get_inputs(rows=32, inputs=768):
    return [torch.randn(rows, inputs)]


def get_init_inputs(inputs=768, outputs=768, rank=16):
    return [inputs, outputs, rank]


def get_workloads():
    return [
        {
            "name": "bert-base query, 32 tokens",
            "inputs": {"rows": 32, "inputs": 768},
            "init": {"inputs": 768, "outputs": 768, "rank": 16},
        },
        {
            "name": "smollm-135m query, 64 tokens",
            "inputs": {"rows": 64, "inputs": 576},
            "init": {"inputs": 576, "outputs": 576, "rank": 8},
        },
        {
            "name": "gpu: llama-3 8b query, 512 tokens",
            "inputs": {"rows": 512, "inputs": 4096},
            "init": {"inputs": 4096, "outputs": 4096, "rank": 16},
        },
        {
            "name": "gpu: llama-3 8b query in bfloat16, 2048 tokens",
            "inputs": {"rows": 2048, "inputs": 4096},
            "init": {"inputs": 4096, "outputs": 4096, "rank": 16},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 19, "inputs": 131},
            "init": {"inputs": 131, "outputs": 77, "rank": 5},
            "held_out": True,
        },
    ]
