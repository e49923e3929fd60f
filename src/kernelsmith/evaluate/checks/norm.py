"""The judge's norm: worst row, error over reference, in float64 and in bounded memory.

Arrays are walked in blocks that stay in the cache: a 16M-element output needs no float64
copy of itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.tensors import Float64, Tensor, widen

Mask = npt.NDArray[np.bool_]

ROW_LIMITS = (16, 4096)
"""A last dimension of such a size is a row; shorter or longer ones are cut into tiles."""

TILE = 1024

_BLOCK = 1 << 16
"""Elements looked at together: 512 KiB of float64."""


def row_length(shape: tuple[int, ...]) -> int:
    """Return how many neighbouring elements share one error."""
    if len(shape) >= 2 and ROW_LIMITS[0] <= shape[-1] <= ROW_LIMITS[1]:
        return shape[-1]
    return min(TILE, max(1, math.prod(shape)))


def blocks(count: int, length: int) -> Iterator[slice]:
    """Yield slices of whole rows that cover ``count`` elements; a last row may be shorter."""
    whole = count - count % length
    step = max(1, _BLOCK // length) * length
    for start in range(0, whole, step):
        yield slice(start, min(start + step, whole))
    if whole < count:
        yield slice(whole, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far one tensor is from the exact one."""

    error: float
    """Of the worst row, in the judge's norm."""
    row: int
    """The worst row, counted in the flattened tensor."""
    strangers: int
    """Elements that are NaN or infinite where they must not be, or the other way round."""
    excess: float
    """The worst element's error over what the tolerance allows; below 0.5 it may read 0,
    and it is 0 where no tolerance was given."""


def distance(
    found: Tensor,
    exact: Tensor,
    eager: Tensor,
    *,
    tolerance: Tolerance | None = None,
    allowed: float = 0.0,
) -> Distance:
    """Measure ``found`` against ``exact``; ``eager`` says where the reference is in doubt."""
    length = row_length(exact.shape)
    flat = [np.ascontiguousarray(each.values).reshape(-1) for each in (found, exact, eager)]
    squares: list[Float64] = []
    norms: list[Float64] = []
    sizes: list[Float64] = []
    strangers, excess = 0, 0.0
    for part in blocks(flat[0].size, length):
        got = widen(flat[0][part], found.dtype)
        want = widen(flat[1][part], exact.dtype)
        width = min(length, got.size)
        with np.errstate(all="ignore"):
            delta = got - want
            square, norm = _row_squares(delta, width), _row_squares(want, width)
        size = np.full(square.size, float(width))
        if not (np.isfinite(square).all() and np.isfinite(norm).all()):
            hint = widen(flat[2][part], eager.dtype)
            sure, delta, odd = resolve(got, want, hint, overflow_edge(eager.dtype, allowed))
            strangers += int(odd.sum())
            want = np.where(np.isfinite(want), want, hint)
            square = _row_squares(np.where(sure, delta, 0.0), width)
            norm = _row_squares(np.where(sure, want, 0.0), width)
            size = sure.reshape(-1, width).sum(axis=1).astype(np.float64)
        squares.append(square)
        norms.append(norm)
        sizes.append(size)
        if tolerance is not None:
            excess = max(excess, _excess(delta, want, tolerance))
    error, row = _worst_row(squares, norms, sizes)
    return Distance(error=error, row=row, strangers=strangers, excess=excess)


def resolve(got: Float64, want: Float64, hint: Float64, top: float) -> tuple[Mask, Float64, Mask]:
    """Judge elements where NaN or infinity plays a part.

    Returns:
        Which elements count in the norm, every element's error (0 where NaN or infinity is
        right), and which elements are strangers. Where float64 and eager (``hint``) disagree
        on what is finite, the reference is in doubt and either is right; an infinity is also
        right within the budget of the dtype's largest number (``top``).
    """
    with np.errstate(all="ignore"):
        delta = got - want
    sure = np.isfinite(delta) & np.isfinite(hint)
    if sure.all():
        return sure, delta, ~sure
    agrees = same_class(got, want) | same_class(got, hint)
    agrees |= np.isinf(got) & (np.abs(want) >= top) & (np.sign(got) == np.sign(want))
    with np.errstate(all="ignore"):
        delta = np.where(np.isfinite(want), delta, got - hint)
    both = np.isfinite(got) & (np.isfinite(want) | np.isfinite(hint))
    return sure, np.where(both, delta, 0.0), ~agrees


def same_class(first: Float64, second: Float64) -> Mask:
    """Whether both are NaN, both the same infinity, or both finite."""
    finite = np.isfinite(first) & np.isfinite(second)
    neither = np.isnan(first) & np.isnan(second)
    return np.asarray(finite | neither | (np.isinf(first) & (first == second)))


def overflow_edge(dtype: str, allowed: float) -> float:
    """Return the size from which on an exact value may honestly be rounded to infinity."""
    bfloat16 = (2 - 2.0**-7) * 2.0**127
    largest = bfloat16 if dtype == "bfloat16" else float(np.finfo(dtype).max)
    # A wide budget (a task of pure cancellation) must not make infinity right everywhere.
    return largest * (1 - min(allowed, 0.1))


def _row_squares(values: Float64, width: int) -> Float64:
    rows = values.reshape(-1, width)
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _excess(delta: Float64, want: Float64, tolerance: Tolerance) -> float:
    size = np.abs(delta)
    # Most blocks are far inside; looking at every |exact| only where one is not saves half.
    if size.max(initial=0.0) <= tolerance.atol / 2:
        return 0.0
    with np.errstate(all="ignore"):
        ratio = size / (tolerance.atol + tolerance.rtol * np.abs(want))
    return float(np.where(size == 0, 0.0, ratio).max())


def _worst_row(
    squares: list[Float64], norms: list[Float64], sizes: list[Float64]
) -> tuple[float, int]:
    if not squares:
        return 0.0, 0
    square, norm, size = np.concatenate(squares), np.concatenate(norms), np.concatenate(sizes)
    total = size.sum()
    mean_square = norm.sum() / total if total else 0.0
    # An exact tensor of zeros has no scale of its own; its errors are absolute.
    floor = size * (mean_square if mean_square > 0 else 1.0)
    with np.errstate(all="ignore"):
        errors = np.sqrt(square / np.maximum(norm, floor))
    errors[size == 0] = 0.0
    errors = np.where(np.isnan(errors), np.inf, errors)
    row = int(np.argmax(errors))
    return float(errors[row]), row
