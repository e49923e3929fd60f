"""Whether a floating output is right: finite where it must be, near enough row by row."""

from dataclasses import dataclass

import numpy as np

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.hints import hint
from kernelsmith.evaluate.checks.norm import (
    Distance,
    Mask,
    distance,
    overflow_edge,
    resolve,
    row_length,
)
from kernelsmith.evaluate.tensors import Float64, Tensor, widen

EAGER_SLACK = 2.0
"""Where eager itself leaves the tolerance, this many times its worst excess is allowed."""


def check_float(
    found: Tensor,
    answer: Answer,
    *,
    budget: Budget,
    tolerance: Tolerance,
    others: tuple[Tensor, ...] = (),
) -> Mismatch | Measured:
    """Hold one floating output against budget and tolerance."""
    exact, eager, allowed = answer.exact, answer.eager, budget.allowed
    seen = distance(found, exact, eager, tolerance=tolerance, allowed=allowed)
    if seen.strangers:
        kind = Kind.NONFINITE
    elif not seen.error <= allowed:
        kind = Kind.ERROR
    elif seen.excess > max(1.0, _room(answer, seen.excess, tolerance)):
        kind = Kind.TOLERANCE
    else:
        return Measured(path=answer.path, error=seen.error, eager_error=budget.eager_error)
    blame = _blame(kind, found, answer, seen=seen, allowed=allowed, tolerance=tolerance)
    lines = (
        _explain(kind, found, answer, seen=seen, blame=blame, budget=budget, tolerance=tolerance),
        hint(found, answer, bad=blame.bad, error=seen.error, others=others),
    )
    return Mismatch(path=answer.path, kind=kind, message="\n".join(filter(None, lines)))


def _room(answer: Answer, excess: float, tolerance: Tolerance) -> float:
    """Return what eager's own excess makes of the tolerance; not computed where nobody asks."""
    if excess <= 1:
        return 1.0
    own = distance(answer.eager, answer.exact, answer.eager, tolerance=tolerance)
    return EAGER_SLACK * own.excess


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Blame:
    """Which elements are wrong, and the one to show."""

    bad: Mask
    where: tuple[int, ...]


def _blame(
    kind: Kind,
    found: Tensor,
    answer: Answer,
    *,
    seen: Distance,
    allowed: float,
    tolerance: Tolerance,
) -> _Blame:
    exact, eager = answer.exact.float64(), answer.eager.float64()
    top = overflow_edge(answer.eager.dtype, allowed)
    sure, delta, odd = resolve(found.float64(), exact, eager, top)
    if kind is Kind.NONFINITE:
        return _Blame(bad=odd, where=_index(int(np.argmax(odd)), odd.shape))
    size, want = np.abs(delta), np.abs(np.where(np.isfinite(exact), exact, eager))
    with np.errstate(all="ignore"):
        if kind is Kind.TOLERANCE:
            share = _shares(size, tolerance.atol + tolerance.rtol * want)
            return _Blame(bad=share > 1, where=_index(int(np.argmax(share)), share.shape))
        scale = np.sqrt(np.square(want[sure]).mean()) if sure.any() else 0.0
        bad = np.asarray(size > allowed * np.maximum(want, scale if scale > 0 else 1.0))
    length = row_length(exact.shape)
    start = seen.row * length
    worst = start + int(np.argmax(size.reshape(-1)[start : start + length]))
    return _Blame(bad=bad, where=_index(worst, exact.shape))


def _shares(size: Float64, bound: Float64) -> Float64:
    return np.where(size == 0, 0.0, np.nan_to_num(size / bound, nan=0.0))


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _explain(
    kind: Kind,
    found: Tensor,
    answer: Answer,
    *,
    seen: Distance,
    blame: _Blame,
    budget: Budget,
    tolerance: Tolerance,
) -> str:
    got, want = (
        float(widen(np.asarray(each.values[blame.where]), each.dtype))
        for each in (found, answer.exact)
    )
    values = f"{answer.path} at {blame.where}: expected {want:.9g}, found {got:.9g}"
    # A row can exceed the budget by many small errors, none of which does so alone.
    count = f"{max(1, int(blame.bad.sum())):,} of {blame.bad.size:,} elements"
    if kind is Kind.NONFINITE:
        return f"{values}; {count} are NaN or infinite on one side only"
    if kind is Kind.TOLERANCE:
        return (
            f"{values}; {count} exceed the task's tolerance (atol {tolerance.atol:g}, "
            f"rtol {tolerance.rtol:g}), the worst by a factor of {seen.excess:.3g}"
        )
    return (
        f"{values}; the worst row is off by {seen.error:.3g} where {budget.allowed:.3g} is allowed "
        f"(eager: {budget.eager_error:.3g}); {count} are far off"
    )
