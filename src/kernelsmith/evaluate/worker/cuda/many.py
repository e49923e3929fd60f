"""Hundreds of pairs of tensors compared in a few operations, for batches of short launches."""

import math
from collections.abc import Iterator

import torch

from kernelsmith.evaluate.worker.cuda import compare
from kernelsmith.evaluate.worker.cuda.walk import pairs as walked
from kernelsmith.evaluate.worker.cuda.walk import zero

_TOGETHER = 1 << 24
"""Elements of all pairs that are stacked into one tensor."""


def relative_many(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
    """``compare.relative`` of every pair, in order, read from the device once."""
    found: list[torch.Tensor] = []
    quick: set[int] = set()
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
        if len(group) == 1:
            quick.add(at)
        found.append(_stacked(group) if len(group) > 1 else _quickly(*group[0]).reshape(1))
        at += len(group)
    said = [float(each) for each in torch.cat(found).tolist()] if found else []
    for place in quick:
        if not math.isfinite(said[place]):
            said[place] = float(compare.relative(*pairs[place]))
    return said


def _quickly(found: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """``compare.relative`` of two tensors that are finite; infinite where one is not.

    Differences are taken in the tensors' own precision, at least float32: a sixth of the memory
    is moved for that, and of what is no longer small nobody asks for the last digits.
    """
    if not (found.is_floating_point() and other.is_floating_point()):
        return compare.relative(found, other)
    apart, sizes = [zero(found)], [zero(found)]
    for a, b in _widened(found, other):
        apart.append(torch.linalg.vector_norm(a - b, dtype=torch.float64))
        sizes.append(torch.linalg.vector_norm(b, dtype=torch.float64))
    above, below = (torch.linalg.vector_norm(torch.stack(each)) for each in (apart, sizes))
    return compare.over(above, below)


def _widened(
    first: torch.Tensor, second: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield two tensors block by block, in float32 where they have less."""
    for a, b in walked(first, second):
        yield (a.float(), b.float()) if a.element_size() < 4 else (a, b)


def _stacked(group: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    form = len(group), group[0][0].numel()  # a scalar has no dimension to flatten
    ours = torch.stack([a for a, _ in group]).reshape(form).double()
    theirs = torch.stack([b for _, b in group]).reshape(form).double()
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    above = torch.linalg.vector_norm((ours - theirs).masked_fill_(same, 0.0), dim=1)
    below = torch.linalg.vector_norm(
        torch.nan_to_num(theirs, nan=0.0, posinf=0.0, neginf=0.0), dim=1
    )
    return torch.where(above == 0, 0.0, compare.over(above, below))
