"""Likely shapes of a module's main input, from the layers that it holds."""

import re

import torch
from torch import nn

from kernelsmith.corpus.inputs.recipe import Recipe
from kernelsmith.corpus.inputs.repair import BATCH, FLOAT, INDEX, LENGTH, SIDE, Tensor

_MOST_LAYERS = 4
_CHANNEL_NAMES = re.compile(
    r"(in_?(channels?|chans?|chs|features?|dim|size|planes)|dim|d_model|hidden_size|embed_dims?"
    r"|channels?|num_features|input_(dim|size)|c_in|idim|n_embd|c1|inp|size|units|hidden_dim)$"
)


def layouts(model: nn.Module, recipe: Recipe, ranks: list[int]) -> list[Tensor]:
    """Shapes to begin with, the likeliest first; those of a documented rank before all others."""
    found: list[Tensor] = []
    layers = [m for m in model.modules() if _is_layer(m)]
    for layer in layers[:_MOST_LAYERS]:
        found += _of_layer(layer)
    widths = [int(text) for name, text in {**recipe.values, **recipe.init}.items()
              if _CHANNEL_NAMES.match(name) and re.fullmatch(r"\d+", text)]  # fmt: skip
    widths += [p.shape[-1] for p in list(model.parameters(recurse=False))[:2] if p.dim()]
    for width in [*dict.fromkeys(widths)][:3]:
        found += _of_width(width)
    found += [*_of_width(64)[:3], Tensor((BATCH, 3, SIDE, SIDE)), Tensor((BATCH, 1, 1024)),
              Tensor((BATCH, 16000)), Tensor((BATCH, 3, 4, SIDE, SIDE))]  # fmt: skip
    unique = list(dict.fromkeys(each for each in found if all(s > 0 for s in each.shape)))
    return sorted(unique, key=lambda each: bool(ranks) and len(each.shape) not in ranks)[:14]


def _is_layer(module: nn.Module) -> bool:
    kinds = (nn.Linear, nn.modules.conv._ConvNd, nn.Embedding, nn.LayerNorm, nn.GroupNorm,
             nn.modules.batchnorm._NormBase, nn.RNNBase, nn.MultiheadAttention, nn.Bilinear,
             nn.EmbeddingBag, nn.RMSNorm)  # fmt: skip
    return isinstance(module, kinds)


def _of_layer(layer: nn.Module) -> list[Tensor]:
    if isinstance(layer, nn.Linear):
        width = layer.in_features
        return [
            Tensor((BATCH, LENGTH, width)),
            Tensor((BATCH, width)),
            Tensor((BATCH, 8, 8, width)),
        ]
    if isinstance(layer, nn.modules.conv._ConvNd):
        width = layer.in_channels
        sides = {1: (64,), 2: (SIDE, SIDE), 3: (8, 16, 16)}[len(layer.kernel_size)]
        return [Tensor((BATCH, width, *sides))]
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        high = layer.num_embeddings
        return [
            Tensor((BATCH, LENGTH), INDEX, min(high, 1000)),
            Tensor((BATCH,), INDEX, min(high, 1000)),
        ]
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        shape = tuple(layer.normalized_shape)
        found = [Tensor((BATCH, LENGTH, *shape))]
        if len(shape) == 1:
            found += [Tensor((BATCH, shape[0], SIDE, SIDE)), Tensor((BATCH, 8, 8, *shape))]
        return found
    if isinstance(layer, nn.GroupNorm):
        width = layer.num_channels
        return [Tensor((BATCH, width, SIDE, SIDE)), Tensor((BATCH, width, 64))]
    if isinstance(layer, nn.modules.batchnorm._NormBase):
        width = layer.num_features
        if type(layer).__name__.endswith("1d"):
            return [Tensor((BATCH, width, 64)), Tensor((BATCH, width))]
        if type(layer).__name__.endswith("3d"):
            return [Tensor((BATCH, width, 8, 16, 16))]
        return [Tensor((BATCH, width, SIDE, SIDE))]
    if isinstance(layer, nn.RNNBase):
        return [Tensor((BATCH, LENGTH, layer.input_size))]
    if isinstance(layer, nn.MultiheadAttention):
        return [Tensor((BATCH, LENGTH, layer.embed_dim))]
    if isinstance(layer, nn.Bilinear):
        return [Tensor((BATCH, layer.in1_features))]
    return []


def _of_width(width: int) -> list[Tensor]:
    return [
        Tensor((BATCH, LENGTH, width)), Tensor((BATCH, width, SIDE, SIDE)), Tensor((BATCH, width)),
        Tensor((BATCH, width, LENGTH)), Tensor((BATCH, LENGTH), INDEX, max(2, min(width, 1000))),
    ]  # fmt: skip


__all__ = ["FLOAT", "layouts", "torch"]
