"""An LSTM over a whole sequence: one large product up front, then a small one every step."""

import torch

FAMILY = "recurrence"
DIFFICULTY = 3
ORIGIN = "AWD-LSTM"

# AWD-LSTM: 400 in, 1150 hidden, 70 steps; speech models use 512 over hundreds of frames.


class Model(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.inward = torch.nn.Linear(inputs, 4 * hidden)
        self.across = torch.nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x, hidden, cell):
        ahead = self.inward(x)
        outputs = []
        for t in range(x.shape[0]):
            gates = ahead[t] + self.across(hidden)
            enter, forget, value, leave = gates.chunk(4, dim=-1)
            kept = torch.sigmoid(forget) * cell
            cell = kept + torch.sigmoid(enter) * torch.tanh(value)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs), cell


def get_inputs(length=32, batch=4, inputs=128, hidden=128):
    return [
        torch.randn(length, batch, inputs),
        torch.randn(batch, hidden),
        torch.randn(batch, hidden),
    ]


def get_init_inputs(inputs=128, hidden=128):
    return [inputs, hidden]


def get_workloads():
    return [
        {
            "name": "small speech model, 32 frames",
            "inputs": {"length": 32, "batch": 4, "inputs": 80, "hidden": 128},
            "init": {"inputs": 80, "hidden": 128},
        },
        {
            "name": "character model, 48 steps",
            "inputs": {"length": 48, "batch": 16, "inputs": 64, "hidden": 64},
            "init": {"inputs": 64, "hidden": 64},
        },
        {
            "name": "gpu: awd-lstm, 70 steps, batch 64",
            "inputs": {"length": 70, "batch": 64, "inputs": 400, "hidden": 1150},
            "init": {"inputs": 400, "hidden": 1150},
        },
        {
            "name": "gpu: speech model, 256 frames, batch 32",
            "inputs": {"length": 256, "batch": 32, "inputs": 512, "hidden": 512},
            "init": {"inputs": 512, "hidden": 512},
        },
        {
            "name": "odd sizes",
            "inputs": {"length": 11, "batch": 3, "inputs": 19, "hidden": 23},
            "init": {"inputs": 19, "hidden": 23},
            "held_out": True,
        },
    ]
