"""Hundreds of pairs of tensors compared in a few operations, for batches of short launches."""

import math

import torch

from kernelsmith.evaluate.worker.cuda import compare

_TOGETHER = 1 << 24
"""Elements of all pairs that are stacked into one tensor."""


def relative_many(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
    """``compare.relative`` of every pair, in order, read from the device once."""
    found: list[torch.Tensor] = []
    at = 0
    while at < len(pairs):
        group = [pairs[at]]
        size = pairs[at][0].numel()
        most = _TOGETHER // max(1, size) if pairs[at][0].is_floating_point() else 1
        while at + len(group) < len(pairs) and len(group) < most:
            following = pairs[at + len(group)]
            if following[0].shape != group[0][0].shape or following[0].dtype != group[0][0].dtype:
                break
            group.append(following)
        found.append(_stacked(group) if len(group) > 1 else compare.relative(*group[0]).reshape(1))
        at += len(group)
    return [float(each) for each in torch.cat(found).tolist()] if found else []


def _stacked(group: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    form = len(group), group[0][0].numel()  # a scalar has no dimension to flatten
    ours = torch.stack([a for a, _ in group]).reshape(form).double()
    theirs = torch.stack([b for _, b in group]).reshape(form).double()
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    above = torch.linalg.vector_norm((ours - theirs).masked_fill_(same, 0.0), dim=1)
    below = torch.linalg.vector_norm(
        torch.nan_to_num(theirs, nan=0.0, posinf=0.0, neginf=0.0), dim=1
    )
    share = above / below.clamp(min=torch.finfo(torch.float64).tiny)
    share = torch.where(above.isfinite() & below.isfinite(), share, math.inf)
    return torch.where(above == 0, 0.0, share)
