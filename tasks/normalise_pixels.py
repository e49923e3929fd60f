"""Bytes of an image to normalised planes: channels to the front, mean and deviation per colour."""

import torch

FAMILY = "image"
DIFFICULTY = 1
ORIGIN = "CLIP ViT-B/32"

# CLIP's preprocessing at 224 px, from a decoder's rows of RGB bytes.


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.48145466, 0.4578275, 0.40821073]))
        self.register_buffer("deviation", torch.tensor([0.26862954, 0.26130258, 0.27577711]))

    def forward(self, pixels):
        values = pixels.to(self.mean.dtype) / 255.0
        return ((values - self.mean) / self.deviation).permute(0, 3, 1, 2).contiguous()


def get_inputs(batch=1, size=224):
    return [torch.randint(0, 256, (batch, size, size, 3), dtype=torch.uint8)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "clip vit-b/32, one image",
            "inputs": {"batch": 1, "size": 224},
        },
        {
            "name": "thumbnails of 64 px, 8 images",
            "inputs": {"batch": 8, "size": 64},
        },
        {
            "name": "gpu: clip vit-b/32, 256 images",
            "inputs": {"batch": 256, "size": 224},
        },
        {
            "name": "gpu: clip vit-l/14 at 336 px in bfloat16, 64 images",
            "inputs": {"batch": 64, "size": 336},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "size": 57},
            "held_out": True,
        },
    ]
