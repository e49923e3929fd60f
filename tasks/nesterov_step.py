"""One step of SGD with Nesterov momentum and weight decay."""

import torch

FAMILY = "optimiser"
DIFFICULTY = 1
ORIGIN = "ResNet-50"

# ResNet-50: learning rate 0.1, momentum 0.9, decay 5e-5; 512 by 512 by 3 by 3 in the last stage.


class Model(torch.nn.Module):
    def forward(self, weight, gradient, momentum):
        gradient = gradient + 5e-5 * weight
        momentum = 0.9 * momentum + gradient
        return weight - 0.1 * (gradient + 0.9 * momentum), momentum


def get_inputs(outputs=128, inputs=128, width=3):
    return [torch.randn(outputs, inputs, width, width) for _ in range(3)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "resnet-50 stage 2, 128 by 128 by 9",
            "inputs": {"outputs": 128, "inputs": 128, "width": 3},
        },
        {
            "name": "resnet-50 stage 3, 256 by 1024",
            "inputs": {"outputs": 256, "inputs": 1024, "width": 1},
        },
        {
            "name": "gpu: resnet-50 stage 4, 512 by 512 by 9",
            "inputs": {"outputs": 512, "inputs": 512, "width": 3},
        },
        {
            "name": "gpu: vgg-16 classifier, 4096 by 25088",
            "inputs": {"outputs": 4096, "inputs": 25088, "width": 1},
        },
        {
            "name": "odd sizes",
            "inputs": {"outputs": 19, "inputs": 23, "width": 5},
            "held_out": True,
        },
    ]
