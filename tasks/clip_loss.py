"""CLIP's contrastive loss: cosines of all pairs, cross entropy towards the diagonal both ways."""

import torch

FAMILY = "loss"
DIFFICULTY = 3
ORIGIN = "CLIP ViT-B/32"

# CLIP ViT-B/32: embeddings of 512; the temperature is what training starts from. Learned ones may
# be so low that the loss is all cancellation, and eager's own answer a matter of luck.


class Model(torch.nn.Module):
    def forward(self, images, texts):
        images = images / torch.linalg.vector_norm(images, dim=-1, keepdim=True)
        texts = texts / torch.linalg.vector_norm(texts, dim=-1, keepdim=True)
        logits = (images @ texts.T) / 0.07
        matching = logits.diagonal()
        by_image = torch.logsumexp(logits, dim=1) - matching
        by_text = torch.logsumexp(logits, dim=0) - matching
        return 0.5 * (by_image.mean() + by_text.mean())


def get_inputs(pairs=128, dim=512):
    images = torch.randn(pairs, dim)
    return [images, images + 2.0 * torch.randn(pairs, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "clip vit-b/32, 128 pairs",
            "inputs": {"pairs": 128, "dim": 512},
        },
        {
            "name": "clip vit-l/14, 64 pairs",
            "inputs": {"pairs": 64, "dim": 768},
        },
        {
            "name": "gpu: clip vit-b/32, 4096 pairs",
            "inputs": {"pairs": 4096, "dim": 512},
        },
        {
            "name": "odd sizes",
            "inputs": {"pairs": 37, "dim": 101},
            "held_out": True,
        },
    ]
