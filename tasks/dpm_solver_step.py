"""One step of DPM-Solver++ (2M) with classifier-free guidance, all of it elementwise."""

import torch

FAMILY = "elementwise"
DIFFICULTY = 2
ORIGIN = "Stable Diffusion 1.5"

# Stable Diffusion 1.5: latents of 4 by 64 by 64 for 512 px; numbers of the schedule per image.


class Model(torch.nn.Module):
    def forward(self, latent, without_text, with_text, before, signal, noise, ratio, step):
        guided = without_text + 7.5 * (with_text - without_text)
        denoised = (latent - noise * guided) / signal
        ahead = 1.5 * denoised - 0.5 * before
        return ratio * latent - step * ahead, denoised


def get_inputs(batch=2, channels=4, size=64):
    images = [torch.randn(batch, channels, size, size) for _ in range(4)]
    schedule = [torch.rand(batch, 1, 1, 1) * 0.6 + 0.3 for _ in range(4)]
    return images + schedule


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "sd 1.5, 4 images of 512 px",
            "inputs": {"batch": 4, "channels": 4, "size": 64},
        },
        {
            "name": "sdxl, 1 image of 1024 px",
            "inputs": {"batch": 1, "channels": 4, "size": 128},
        },
        {
            "name": "gpu: sdxl, 64 images of 1024 px",
            "inputs": {"batch": 64, "channels": 4, "size": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 5, "size": 29},
            "held_out": True,
        },
    ]
