"""Sizes of windows as they are written: one number for all dimensions, or one each."""

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.trace import Value, plain_of

Three = tuple[int, int, int]


def three(value: Value, ndim: int, rest: int, *, of: str) -> Three:
    """One number per dimension, with leading ones for what is missing."""
    known = plain_of(value)
    each = known if isinstance(known, tuple) else (known,) * ndim
    numbers = [n for n in each if isinstance(n, int) and not isinstance(n, bool)]
    if len(numbers) == 1 and len(each) == 1:
        numbers *= ndim
    if len(numbers) != ndim:
        raise NotRecognised(f"rules must know the sizes of a {of}")
    a, b, c = (*([rest] * (3 - ndim)), *numbers)
    return a, b, c
