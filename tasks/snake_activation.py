"""Snake: x plus a squared sine whose frequency is learned per channel, for periodic signals."""

import torch

FAMILY = "activation"
DIFFICULTY = 1
ORIGIN = "BigVGAN"

# BigVGAN (24 kHz, 100 bands): from 768 channels down to 24 while the signal grows longer.


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.alpha = torch.nn.Parameter(torch.ones(channels))

    def forward(self, x):
        alpha = self.alpha[:, None]
        return x + torch.sin(alpha * x).square() / alpha


def get_inputs(batch=1, channels=96, length=2048):
    return [torch.randn(batch, channels, length)]


def get_init_inputs(channels=96):
    return [channels]


def get_workloads():
    return [
        {
            "name": "bigvgan, 96 channels, 2048 samples",
            "inputs": {"batch": 1, "channels": 96, "length": 2048},
            "init": {"channels": 96},
        },
        {
            "name": "bigvgan, 24 channels, 8192 samples",
            "inputs": {"batch": 1, "channels": 24, "length": 8192},
            "init": {"channels": 24},
        },
        {
            "name": "gpu: bigvgan, 192 channels, 16 clips",
            "inputs": {"batch": 16, "channels": 192, "length": 16384},
            "init": {"channels": 192},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 23, "length": 517},
            "init": {"channels": 23},
            "held_out": True,
        },
    ]
