"""Large tensors, walked in blocks and in logical order, and numbers read from a device at once."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

BLOCK = 1 << 24
"""Elements looked at together: 128 MiB of float64."""


def cut(count: int, *, weight: int = 1, unit: int = 1) -> list[slice]:
    """Cut ``count`` items of ``weight`` elements into blocks of a multiple of ``unit`` items."""
    step = max(1, BLOCK // (unit * weight)) * unit
    return [slice(at, min(at + step, count)) for at in range(0, count, step)]


def part_of(tensor: Tensor, span: slice) -> Tensor:
    """Return elements in logical order; a copy, where one is needed, holds no others."""
    tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor.view(-1)[span]
    start, stop, inner = span.start, span.stop, tensor[0].numel()
    first, last = -(-start // inner), stop // inner
    if first > last:
        return part_of(tensor[last], slice(start - last * inner, stop - last * inner))
    pieces = [tensor[first:last].reshape(-1)]
    if start < first * inner:
        pieces.insert(0, part_of(tensor[first - 1], slice(start - (first - 1) * inner, inner)))
    if last * inner < stop:
        pieces.append(part_of(tensor[last], slice(0, stop - last * inner)))
    return torch.cat(pieces) if len(pieces) > 1 else pieces[0]


def pairs(first: Tensor, second: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield two tensors of one shape, block by block."""
    assert first.shape == second.shape
    for span in cut(first.numel()):
        yield part_of(first, span), part_of(second, span)


def read(*groups: list[Tensor]) -> list[list[float]]:
    """Bring numbers to the host, all at once."""
    flat = iter(torch.stack([each.double() for group in groups for each in group]).tolist())
    return [[next(flat) for _ in group] for group in groups]


def zero(like: Tensor) -> Tensor:
    """Return a sum of nothing, on the device of ``like``."""
    return torch.zeros((), dtype=torch.float64, device=like.device)


def item_of(tensor: Tensor, flat: int) -> float:
    """Bring one element to the host."""
    return part_of(tensor, slice(flat, flat + 1)).item()  # type: ignore[no-any-return]


def index_of(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return where in a tensor of this shape the element counted ``flat`` lies."""
    index: list[int] = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))
