"""Which neighbours an output has, axis by axis: a transposed convolution has several answers."""

from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.neighbours.graph import Convolution

_MOST_PHASES = 32
_MOST_FORMS = 8
"""Of which each is a kernel of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Output ``j * apart + shift`` has the neighbours ``j * stride + base + m * step``."""

    taps: int
    stride: int
    base: int
    """Where the first neighbour of output 0 lies in the copy."""
    step: int
    shift: int
    apart: int
    first: int
    """The weight of neighbour 0, along this axis."""
    next: int
    """From the weight of one neighbour to that of the next."""
    low: int
    """Zeros of the copy before the input."""


Phase = tuple[Axis, Axis, Axis]


def phases_of(found: Convolution) -> list[Phase]:
    """All outputs, in groups that have the same neighbours.

    Raises:
        NotRecognised: There are too many groups.
    """
    if not found.turned:
        return [(_forward(found, 0), _forward(found, 1), _forward(found, 2))]
    if prod(found.stride) > _MOST_PHASES:
        raise NotRecognised(f"rules know transposed convolutions of {_MOST_PHASES} phases")
    z, y, x = (_turned(found, i) for i in range(3))
    phases = list(product(z, y, x))
    if len({tuple(axis.taps for axis in each) for each in phases}) > _MOST_FORMS:
        raise NotRecognised(f"rules know phases of {_MOST_FORMS} numbers of neighbours")
    return phases


def _forward(found: Convolution, i: int) -> Axis:
    return Axis(
        taps=found.size[i], stride=found.stride[i], base=0, step=found.step[i], shift=0, apart=1,
        first=0, next=1, low=found.padding[i],
    )  # fmt: skip


def _turned(found: Convolution, i: int) -> list[Axis]:
    """Output ``f`` meets the weights ``t`` for which the stride divides ``f + padding - t * step``.

    These lie ``period`` apart, if there are any.
    """
    size, stride, padding, step = (
        found.size[i], found.stride[i], found.padding[i], found.step[i],
    )  # fmt: skip
    period = stride // gcd(stride, step)
    back = step * period // stride
    met = []
    for f in range(stride):
        firsts = [t for t in range(min(size, period)) if (f + padding - t * step) % stride == 0]
        met.append((f, firsts[0] if firsts else None))
    counts = [0 if first is None else -(-(size - first) // period) for _, first in met]
    bases = [(f + padding - (first or 0) * step) // stride for f, first in met]
    low = max(0, *((n - 1) * back - at for n, at in zip(counts, bases, strict=True) if n))
    return [
        Axis(
            taps=n, stride=1, base=at + low, step=-back, shift=f, apart=stride, first=first or 0,
            next=period, low=low,
        )
        for (f, first), n, at in zip(met, counts, bases, strict=True)
    ]  # fmt: skip
