"""Images cut into patches and projected, a class token in front, position embeddings added."""

import torch

FAMILY = "convolution"
DIFFICULTY = 2
ORIGIN = "ViT-B/16"

# ViT-B/16: 196 patches of 16 by 16 to 768; ViT-Ti/16: the same to 192.


class Model(torch.nn.Module):
    def __init__(self, dim, patch, patches):
        super().__init__()
        self.project = torch.nn.Conv2d(3, dim, patch, stride=patch)
        self.first = torch.nn.Parameter(torch.randn(1, 1, dim))
        self.positions = torch.nn.Parameter(0.5 * torch.randn(patches + 1, dim))

    def forward(self, images):
        tokens = self.project(images).flatten(2).transpose(1, 2)
        first = self.first.expand(images.shape[0], -1, -1)
        return torch.cat((first, tokens), dim=1) + self.positions


def get_inputs(batch=1, size=224):
    return [torch.randn(batch, 3, size, size)]


def get_init_inputs(dim=768, patch=16, patches=196):
    return [dim, patch, patches]


def get_workloads():
    return [
        {
            "name": "vit-b/16 at 112 px",
            "inputs": {"batch": 1, "size": 112},
            "init": {"dim": 768, "patch": 16, "patches": 49},
        },
        {
            "name": "vit-ti/16, one image",
            "inputs": {"batch": 1, "size": 224},
            "init": {"dim": 192, "patch": 16, "patches": 196},
        },
        {
            "name": "gpu: vit-b/16, 64 images",
            "inputs": {"batch": 64, "size": 224},
            "init": {"dim": 768, "patch": 16, "patches": 196},
        },
        {
            "name": "gpu: vit-l/14 in bfloat16, 32 images",
            "inputs": {"batch": 32, "size": 224},
            "init": {"dim": 1024, "patch": 14, "patches": 256},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "size": 35},
            "init": {"dim": 61, "patch": 7, "patches": 25},
            "held_out": True,
        },
    ]
