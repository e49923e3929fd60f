"""A product with weights of 4 bits, two in a byte, with a scale and a zero per group of 128."""

import torch

FAMILY = "quantisation"
DIFFICULTY = 3
ORIGIN = "Llama-3 8B in AWQ"

# AWQ on Llama-3 8B: 4096 by 4096 weights in groups of 128.


class Model(torch.nn.Module):
    def forward(self, packed, zeros, scales, x):
        codes = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(1)
        groups = codes.unflatten(1, (zeros.shape[1], -1)).to(x.dtype)
        weight = (groups - zeros.unsqueeze(-1).to(x.dtype)) * scales.unsqueeze(-1)
        return x @ weight.flatten(1).T


def get_inputs(rows=4, inputs=1024, outputs=1024, group=128):
    groups = inputs // group
    return [
        torch.randint(0, 256, (outputs, inputs // 2), dtype=torch.uint8),
        torch.randint(4, 12, (outputs, groups), dtype=torch.uint8),
        0.01 + 0.01 * torch.rand(outputs, groups),
        torch.randn(rows, inputs),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "a quarter of llama-3 8b, 4 tokens",
            "inputs": {"rows": 4, "inputs": 1024, "outputs": 1024, "group": 128},
        },
        {
            "name": "smollm-135m mlp, 16 tokens",
            "inputs": {"rows": 16, "inputs": 576, "outputs": 1536, "group": 64},
        },
        {
            "name": "gpu: llama-3 8b output, 16 tokens",
            "inputs": {"rows": 16, "inputs": 4096, "outputs": 4096, "group": 128},
        },
        {
            "name": "gpu: llama-3 8b up in bfloat16, 1 token",
            "inputs": {"rows": 1, "inputs": 4096, "outputs": 14336, "group": 128},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 7, "inputs": 114, "outputs": 83, "group": 38},
            "held_out": True,
        },
    ]
