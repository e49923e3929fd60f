"""One step of DreamerV3's recurrent model: a GRU whose gates share one layer norm."""

import torch

FAMILY = "recurrence"
DIFFICULTY = 2
ORIGIN = "DreamerV3"

# DreamerV3 S: 512 units, M: 1024, XL: 4096; thousands of imagined steps at once.


class Model(torch.nn.Module):
    def __init__(self, inputs, units):
        super().__init__()
        self.linear = torch.nn.Linear(inputs + units, 3 * units, bias=False)
        self.norm = torch.nn.LayerNorm(3 * units)

    def forward(self, x, state):
        parts = self.norm(self.linear(torch.cat((x, state), dim=-1)))
        reset, value, update = parts.chunk(3, dim=-1)
        value = torch.tanh(torch.sigmoid(reset) * value)
        update = torch.sigmoid(update - 1.0)
        return update * value + (1.0 - update) * state


def get_inputs(batch=16, inputs=512, units=512):
    return [torch.randn(batch, inputs), torch.randn(batch, units)]


def get_init_inputs(inputs=512, units=512):
    return [inputs, units]


def get_workloads():
    return [
        {
            "name": "dreamerv3 s, 16 streams",
            "inputs": {"batch": 16, "inputs": 512, "units": 512},
            "init": {"inputs": 512, "units": 512},
        },
        {
            "name": "dreamerv3 xs, 64 streams",
            "inputs": {"batch": 64, "inputs": 256, "units": 256},
            "init": {"inputs": 256, "units": 256},
        },
        {
            "name": "gpu: dreamerv3 m, 1024 imagined states",
            "inputs": {"batch": 1024, "inputs": 640, "units": 1024},
            "init": {"inputs": 640, "units": 1024},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 7, "inputs": 53, "units": 61},
            "init": {"inputs": 53, "units": 61},
            "held_out": True,
        },
    ]
