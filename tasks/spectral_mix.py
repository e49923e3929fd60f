"""Channels mixed by a complex matrix of their own for every frequency of a grid."""

import torch

FAMILY = "batched matmul"
DIFFICULTY = 3
ORIGIN = "Fourier Neural Operator"

# FNO-2D on Darcy flow: width 32, 12 by 12 modes; real and imaginary parts as two tensors.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs, modes):
        super().__init__()
        shape = (inputs, outputs, modes, modes)
        self.real = torch.nn.Parameter(torch.randn(shape) / inputs**0.5)
        self.imaginary = torch.nn.Parameter(torch.randn(shape) / inputs**0.5)

    def forward(self, real, imaginary):
        def mix(x, weight):
            return torch.einsum("bixy,ioxy->boxy", x, weight)

        return (
            mix(real, self.real) - mix(imaginary, self.imaginary),
            mix(real, self.imaginary) + mix(imaginary, self.real),
        )


def get_inputs(batch=4, inputs=32, modes=12):
    return [torch.randn(batch, inputs, modes, modes) for _ in range(2)]


def get_init_inputs(inputs=32, outputs=32, modes=12):
    return [inputs, outputs, modes]


def get_workloads():
    return [
        {
            "name": "fno on darcy flow, batch 4",
            "inputs": {"batch": 4, "inputs": 32, "modes": 12},
            "init": {"inputs": 32, "outputs": 32, "modes": 12},
        },
        {
            "name": "narrow fno, batch 16",
            "inputs": {"batch": 16, "inputs": 12, "modes": 8},
            "init": {"inputs": 12, "outputs": 20, "modes": 8},
        },
        {
            "name": "gpu: fno of width 64, 32 modes, batch 32",
            "inputs": {"batch": 32, "inputs": 64, "modes": 32},
            "init": {"inputs": 64, "outputs": 64, "modes": 32},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "inputs": 7, "modes": 5},
            "init": {"inputs": 7, "outputs": 11, "modes": 5},
            "held_out": True,
        },
    ]
