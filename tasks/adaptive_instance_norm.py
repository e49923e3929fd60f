"""Every channel of an image normalised, then given the scale and shift that a style has."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 2
ORIGIN = "AdaIN style transfer"

# AdaIN on VGG-19's relu4_1: 512 channels at 64 by 64 for 512 px.


class Model(torch.nn.Module):
    def forward(self, content, style):
        mean = content.mean(dim=(2, 3), keepdim=True)
        deviation = torch.sqrt(content.var(dim=(2, 3), keepdim=True) + 1e-5)
        style_mean = style.mean(dim=(2, 3), keepdim=True)
        style_deviation = torch.sqrt(style.var(dim=(2, 3), keepdim=True) + 1e-5)
        return (content - mean) / deviation * style_deviation + style_mean


def get_inputs(batch=1, channels=512, size=16, style_size=16):
    spread = torch.rand(batch, channels, 1, 1) + 0.5
    return [
        torch.randn(batch, channels, size, size),
        torch.randn(batch, channels, style_size, style_size) * spread,
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "vgg-19 relu4_1, 128 px",
            "inputs": {"batch": 1, "channels": 512, "size": 16, "style_size": 16},
        },
        {
            "name": "vgg-19 relu3_1, 128 px, larger style",
            "inputs": {"batch": 1, "channels": 256, "size": 32, "style_size": 48},
        },
        {
            "name": "gpu: vgg-19 relu4_1, 512 px, batch 16",
            "inputs": {"batch": 16, "channels": 512, "size": 64, "style_size": 64},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 17, "size": 19, "style_size": 23},
            "held_out": True,
        },
    ]
