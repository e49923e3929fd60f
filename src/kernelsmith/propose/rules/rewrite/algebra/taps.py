"""Sums over the positions that one tap of a convolution sees, without the convolution."""

from itertools import pairwise

from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import Node

Range = tuple[int, int, int]
"""Start, stop and step of the input positions that one tap meets over all outputs."""

_MOST_TAPS = 7


def conv_ranges(node: Node, size: int, kernel: int, axis: int) -> list[Range]:
    """Tap k meets x[o * stride + k * dilation - padding] for all outputs o, inside the input."""
    s, p, d = (node.dims(each)[axis] for each in ("stride", "padding", "dilation"))
    outputs = node.shape[2 + axis]
    found = []
    for k in range(kernel):
        first = k * d - p
        low = -(-max(0, -first) // s)
        high = min(outputs, (size - 1 - first) // s + 1)
        found.append((first + low * s, first + (high - 1) * s + 1, s) if high > low else (0, 0, s))
    return found


def transposed_ranges(node: Node, size: int, kernel: int, axis: int) -> list[Range]:
    """Tap k sends x[i] to output i * stride + k * dilation - padding, where there is one."""
    s, p, d = (node.dims(each)[axis] for each in ("stride", "padding", "dilation"))
    outputs = node.shape[2 + axis]
    found = []
    for k in range(kernel):
        shift = k * d - p
        low = max(0, -(shift // s) if shift < 0 else 0)
        high = min(size, (outputs - 1 - shift) // s + 1)
        found.append((low, high, 1) if high > low else (0, 0, 1))
    return found


def summed(b: Build, x: int, dim: int, ranges: list[Range]) -> int | None:
    """For each range the sum of ``x`` over it, along ``dim`` in place of that dimension.

    Ranges of one residue share their common stretch: it is summed once, and the few positions that
    only some taps meet are added. Nothing is subtracted, so nothing cancels, and each sum has
    exactly its own elements (an infinity reaches the sums that it belongs to and no other).
    """
    if len(ranges) > _MOST_TAPS or any(low >= high for low, high, _ in ranges):
        return None
    if len(set(ranges)) == 1:
        return _stretch(b, x, dim, ranges[0])
    taps = []
    for low, high, step in ranges:
        alike = [each for each in ranges if each[0] % step == low % step]
        inner = max(each[0] for each in alike), min(each[1] for each in alike)
        if inner[0] >= inner[1]:
            taps.append(_stretch(b, x, dim, (low, high, step)))
            continue
        edges = sorted({*(each[0] for each in alike), *(_end(each) for each in alike)})
        total = _stretch(b, x, dim, (*inner, step))
        for start, stop in pairwise(edges):
            outside = stop <= inner[0] or start >= _end((*inner, step))
            if low <= start and stop <= _end((low, high, step)) and outside:
                total = b.binary("add", total, _stretch(b, x, dim, (start, stop, step)))
        taps.append(total)
    return b.cat(taps, dim)


def _end(of: Range) -> int:
    """One step behind the last position: ends of one residue are comparable."""
    low, high, step = of
    return low + -(-(high - low) // step) * step


def _stretch(b: Build, x: int, dim: int, of: Range) -> int:
    low, high, step = of
    last = low + (-(-(high - low) // step) - 1) * step
    return b.reduce("sum", b.slice(x, dim, low, last + 1, step), (dim,), keep=True)
