"""Keys of a paged cache gathered by every stream's table of pages, one head after the other."""

import torch

FAMILY = "indexing"
DIFFICULTY = 1
ORIGIN = "Llama-3 8B in vLLM"

# Llama-3 8B in vLLM: pages of 16 tokens, 8 key heads of 128.


class Model(torch.nn.Module):
    def forward(self, table, cache):
        return cache[table].flatten(1, 2).transpose(1, 2).contiguous()


def get_inputs(streams=4, pages=8, cached=64, heads=8, dim=128):
    return [
        torch.randint(0, cached, (streams, pages)),
        torch.randn(cached, 16, heads, dim),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "llama-3 8b, 4 streams of 128 tokens",
            "inputs": {"streams": 4, "pages": 8, "cached": 64, "heads": 8, "dim": 128},
        },
        {
            "name": "qwen2.5 0.5b, 8 streams of 512 tokens",
            "inputs": {"streams": 8, "pages": 32, "cached": 300, "heads": 2, "dim": 64},
        },
        {
            "name": "gpu: llama-3 8b, 32 streams of 2048 tokens",
            "inputs": {"streams": 32, "pages": 128, "cached": 4500, "heads": 8, "dim": 128},
        },
        {
            "name": "gpu: llama-3 8b in bfloat16, 64 streams of 1024 tokens",
            "inputs": {"streams": 64, "pages": 64, "cached": 4500, "heads": 8, "dim": 128},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"streams": 3, "pages": 5, "cached": 17, "heads": 3, "dim": 21},
            "held_out": True,
        },
    ]
