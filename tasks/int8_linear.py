"""A product of 8-bit integers, scaled back per row and per column, with bias and GELU."""

import torch
import torch.nn.functional as F

FAMILY = "quantisation"
DIFFICULTY = 2
ORIGIN = "BERT-base in int8"

# BERT-base in int8 (W8A8): 768 to 3072 in the MLP; sums of products stay exact in float32.


class Model(torch.nn.Module):
    def forward(self, x, x_scale, weight, weight_scale, bias):
        product = x.to(x_scale.dtype) @ weight.to(x_scale.dtype).T
        return F.gelu(product * x_scale * weight_scale + bias)


def get_inputs(rows=32, inputs=768, outputs=768):
    return [
        torch.randint(-127, 128, (rows, inputs), dtype=torch.int8),
        0.01 + 0.01 * torch.rand(rows, 1),
        torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8),
        0.0005 + 0.0005 * torch.rand(outputs),
        torch.randn(outputs),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "bert-base, 32 tokens",
            "inputs": {"rows": 32, "inputs": 768, "outputs": 768},
        },
        {
            "name": "minilm mlp, 64 tokens",
            "inputs": {"rows": 64, "inputs": 384, "outputs": 1536},
        },
        {
            "name": "gpu: bert-base mlp, 4096 tokens",
            "inputs": {"rows": 4096, "inputs": 768, "outputs": 3072},
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 29, "inputs": 211, "outputs": 97},
            "held_out": True,
        },
    ]
