"""Features of occupied pillars written to their cells of an otherwise empty map seen from above."""

import torch

FAMILY = "indexing"
DIFFICULTY = 2
ORIGIN = "PointPillars"

# PointPillars on KITTI: 64 channels, a map of 496 by 432, at most 12000 pillars.


class Model(torch.nn.Module):
    def __init__(self, height, width):
        super().__init__()
        self.height, self.width = height, width

    def forward(self, cells, features):
        canvas = features.new_zeros(features.shape[1], self.height * self.width)
        canvas = canvas.index_copy(1, cells, features.t())
        return canvas.view(-1, self.height, self.width)


def get_inputs(pillars=1500, channels=64, height=62, width=54):
    return [torch.randperm(height * width)[:pillars], torch.randn(pillars, channels)]


def get_init_inputs(height=62, width=54):
    return [height, width]


def get_workloads():
    return [
        {
            "name": "an eighth of kitti each way, 300 pillars",
            "inputs": {"pillars": 300, "channels": 64, "height": 62, "width": 54},
            "init": {"height": 62, "width": 54},
        },
        {
            "name": "coarse map, 2000 pillars",
            "inputs": {"pillars": 2000, "channels": 32, "height": 124, "width": 108},
            "init": {"height": 124, "width": 108},
        },
        {
            "name": "gpu: kitti, 12000 pillars",
            "inputs": {"pillars": 12000, "channels": 64, "height": 496, "width": 432},
            "init": {"height": 496, "width": 432},
        },
        {
            "name": "odd sizes",
            "inputs": {"pillars": 41, "channels": 13, "height": 17, "width": 11},
            "init": {"height": 17, "width": 11},
            "held_out": True,
        },
    ]
