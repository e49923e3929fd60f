"""Cross entropy with labels smoothed by a tenth, averaged over the batch."""

import torch

FAMILY = "loss"
DIFFICULTY = 2
ORIGIN = "ViT-B/16"

# ViT-B/16 and DeiT-B on ImageNet: 1000 classes, smoothing 0.1; BERT: a vocabulary of 30522.


class Model(torch.nn.Module):
    def forward(self, logits, labels):
        logs = torch.log_softmax(logits, dim=-1)
        picked = logs.gather(1, labels.unsqueeze(1)).squeeze(1)
        return -(0.9 * picked + 0.1 * logs.mean(dim=-1)).mean()


def get_inputs(rows=256, classes=1000):
    return [2.0 * torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "vit-b/16, 256 images",
            "inputs": {"rows": 256, "classes": 1000},
        },
        {
            "name": "bert-base, 24 masked tokens",
            "inputs": {"rows": 24, "classes": 30522},
        },
        {
            "name": "gpu: vit-b/16 on imagenet-21k, 1024 images",
            "inputs": {"rows": 1024, "classes": 21843},
        },
        {
            "name": "gpu: bert-base, 4096 masked tokens",
            "inputs": {"rows": 4096, "classes": 30522},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 37, "classes": 619},
            "held_out": True,
        },
    ]
