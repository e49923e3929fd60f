"""Writes keys and values into a cache at given places and returns nothing."""

import torch


def store(cache, rows, places):
    cache.index_copy_(0, places, rows)


def get_inputs():
    places = torch.randperm(512)[:64]
    return [torch.randn(512, 128), torch.randn(64, 128), places]
