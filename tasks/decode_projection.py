"""A projection of very few rows, bound by reading its weights, with bias and residual."""

import torch

FAMILY = "matmul"
DIFFICULTY = 1
ORIGIN = "Whisper medium"

# Whisper medium: 1024 wide, 4096 in the MLP; a decoder adds one token at a time.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x, residual):
        return residual + self.linear(x)


def get_inputs(rows=1, inputs=1024, outputs=1024):
    return [torch.randn(rows, inputs), torch.randn(rows, outputs)]


def get_init_inputs(inputs=1024, outputs=1024):
    return [inputs, outputs]


def get_workloads():
    return [
        {
            "name": "whisper medium output, 2 beams",
            "inputs": {"rows": 2, "inputs": 1024, "outputs": 1024},
            "init": {"inputs": 1024, "outputs": 1024},
        },
        {
            "name": "whisper tiny mlp, 5 beams",
            "inputs": {"rows": 5, "inputs": 1536, "outputs": 384},
            "init": {"inputs": 1536, "outputs": 384},
        },
        {
            "name": "gpu: llama-3 8b output, 4 streams",
            "inputs": {"rows": 4, "inputs": 4096, "outputs": 4096},
            "init": {"inputs": 4096, "outputs": 4096},
        },
        {
            "name": "gpu: llama-3 8b down in bfloat16, 8 streams",
            "inputs": {"rows": 8, "inputs": 14336, "outputs": 4096},
            "init": {"inputs": 14336, "outputs": 4096},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 3, "inputs": 307, "outputs": 119},
            "init": {"inputs": 307, "outputs": 119},
            "held_out": True,
        },
    ]
