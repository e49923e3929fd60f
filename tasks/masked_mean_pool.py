"""The mean of a sentence's tokens without padding, scaled to unit length."""

import torch

FAMILY = "pooling"
DIFFICULTY = 2
ORIGIN = "all-MiniLM-L6"

# all-MiniLM-L6-v2: vectors of 384, sentences of up to 256 tokens.


class Model(torch.nn.Module):
    def forward(self, tokens, lengths):
        kept = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        total = (tokens * kept.unsqueeze(-1).to(tokens.dtype)).sum(dim=1)
        mean = total / lengths[:, None]
        return mean / torch.linalg.vector_norm(mean, dim=-1, keepdim=True)


def get_inputs(batch=16, length=64, dim=384):
    return [torch.randn(batch, length, dim), torch.randint(1, length + 1, (batch,))]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "minilm-l6, 16 sentences",
            "inputs": {"batch": 16, "length": 64, "dim": 384},
        },
        {
            "name": "bge-base, 4 passages",
            "inputs": {"batch": 4, "length": 256, "dim": 768},
        },
        {
            "name": "gpu: minilm-l6, 1024 sentences",
            "inputs": {"batch": 1024, "length": 256, "dim": 384},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 7, "length": 29, "dim": 133},
            "held_out": True,
        },
    ]
