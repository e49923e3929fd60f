"""Word, position and segment embeddings added up, then layer norm."""

import torch

FAMILY = "indexing"
DIFFICULTY = 2
ORIGIN = "BERT-base"

# BERT-base: 30522 words, 512 positions, 2 segments, width 768.


class Model(torch.nn.Module):
    def __init__(self, words, positions, dim):
        super().__init__()
        self.words = torch.nn.Embedding(words, dim)
        self.positions = torch.nn.Embedding(positions, dim)
        self.segments = torch.nn.Embedding(2, dim)
        self.norm = torch.nn.LayerNorm(dim, eps=1e-12)

    def forward(self, ids, segments):
        positions = self.positions.weight[: ids.shape[1]]
        return self.norm(self.words(ids) + positions + self.segments(segments))


def get_inputs(batch=2, length=128, words=4096):
    return [torch.randint(0, words, (batch, length)), torch.randint(0, 2, (batch, length))]


def get_init_inputs(words=4096, positions=512, dim=768):
    return [words, positions, dim]


def get_workloads():
    return [
        {
            "name": "bert-base, fewer words, 2 by 128 tokens",
            "inputs": {"batch": 2, "length": 128, "words": 4096},
            "init": {"words": 4096, "positions": 512, "dim": 768},
        },
        {
            "name": "minilm, fewer words, 16 by 32 tokens",
            "inputs": {"batch": 16, "length": 32, "words": 4096},
            "init": {"words": 4096, "positions": 512, "dim": 384},
        },
        {
            "name": "gpu: bert-base, 64 by 512 tokens",
            "inputs": {"batch": 64, "length": 512, "words": 30522},
            "init": {"words": 30522, "positions": 512, "dim": 768},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "length": 29, "words": 211},
            "init": {"words": 211, "positions": 31, "dim": 77},
            "held_out": True,
        },
    ]
