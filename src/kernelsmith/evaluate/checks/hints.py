"""What a wrong floating output looks like: the usual mistakes, recognised by their traces."""

from collections.abc import Callable, Iterator

import numpy as np

from kernelsmith.evaluate.checks.answer import Answer
from kernelsmith.evaluate.checks.norm import Mask
from kernelsmith.evaluate.tensors import EPSILON, Float64, Tensor

_CLOSE = 0.02
"""Error over variation, in the 2-norm, below which two tensors are the same but for precision."""

_ENOUGH = 1 << 16
"""Elements that are looked at to recognise a pattern."""

_Look = Callable[[], str]


def hint(
    found: Tensor, answer: Answer, *, bad: Mask, error: float, others: tuple[Tensor, ...] = ()
) -> str:
    """Return one line on the likely cause, or nothing where none is recognised."""
    got, want = found.float64(), answer.exact.float64()
    looks: tuple[_Look, ...] = (
        lambda: _blank(got, want),
        lambda: _stale(found, others),
        lambda: _scaled(got, want),
        lambda: _moved(got, want),
        lambda: _corner(bad),
        lambda: _rounded(found, answer, error),
        lambda: _unwritten(got, bad),
    )
    return next((line for look in looks if (line := look())), "")


def _blank(got: Float64, want: Float64) -> str:
    if got.size < 2:
        return ""
    if not got.any():
        return "hint: every element found is 0; was the kernel launched and its output returned?"
    if np.isnan(got).all():
        return "hint: every element found is NaN; outputs start as NaN, so nothing was written"
    first = got.reshape(-1)[0]
    if (got == first).all() and (want != want.reshape(-1)[0]).any():
        return f"hint: every element found is {first:.9g}"
    return ""


def _stale(found: Tensor, others: tuple[Tensor, ...]) -> str:
    if any(found.shape == other.shape and _near(found, other) for other in others):
        return "hint: this is the answer to another input; was a result kept from an earlier call?"
    return ""


def _near(found: Tensor, other: Tensor) -> bool:
    return _close(found.float64(), other.float64())


def _close(got: Float64, want: Float64) -> bool:
    """Whether two tensors agree; a common offset, which anything would share, does not count."""
    got, want = _sampled(got), _sampled(want)
    with np.errstate(all="ignore"):
        variation = float(np.linalg.norm(want - want.mean()))
        return bool(variation > 0 and float(np.linalg.norm(got - want)) < _CLOSE * variation)


def _sampled(values: Float64) -> Float64:
    """Thin a large tensor out along its longest dimension: a hint need not see everything."""
    step = values.size // _ENOUGH
    if step < 2:
        return values
    axis = int(np.argmax(values.shape))
    return values[(slice(None),) * axis + (slice(None, None, step),)]


def _rounded(found: Tensor, answer: Answer, error: float) -> str:
    """Recognise half precision by the size of the error or by the bits that are never set."""
    if answer.eager.dtype != "float32":
        return ""
    for name, bits in (("bfloat16", 7), ("float16 or TF32", 10)):
        if _fits(found, bits) and not _fits(answer.eager, bits):
            return f"hint: every element found has only the bits of {name}; keep float32"
    for name, dtype in (("float16 or TF32", "float16"), ("bfloat16", "bfloat16")):
        if 0.05 * EPSILON[dtype] < error < 0.8 * EPSILON[dtype]:
            return f"hint: an error of this size is what {name} inputs or products give"
    return ""


def _fits(tensor: Tensor, bits: int) -> bool:
    mask = np.uint32((1 << (23 - bits)) - 1)
    values = np.ascontiguousarray(tensor.values, dtype=np.float32).view(np.uint32)
    return not bool((values & mask).any())


def _scaled(got: Float64, want: Float64) -> str:
    with np.errstate(all="ignore"):
        power = float(np.square(want).sum())
        factor = float((got * want).sum()) / power if power > 0 else float("nan")
    if not np.isfinite(factor) or abs(factor - 1) < _CLOSE or abs(factor) < 1e-6:
        return ""
    if _close(got / factor, want):
        return f"hint: what was found is {factor:.4g} times what is expected, everywhere"
    return ""


def _moved(got: Float64, want: Float64) -> str:
    """Recognise right values in the wrong place."""
    for label, moved in _moves(got):
        if moved.shape == want.shape and _close(moved, want):
            return f"hint: the values are right but {label}"
    for axis in range(want.ndim):
        whole = (slice(None),) * axis
        late, early = (*whole, slice(1, None)), (*whole, slice(None, -1))
        if want.shape[axis] > 2 and _close(got[late], want[early]):
            return f"hint: the values are right but shifted by 1 in dimension {axis}"
        if want.shape[axis] > 2 and _close(got[early], want[late]):
            return f"hint: the values are right but shifted by -1 in dimension {axis}"
    return ""


def _moves(got: Float64) -> Iterator[tuple[str, Float64]]:
    if got.ndim < 2 or 1 in got.shape[-2:]:
        return
    yield "the last two dimensions are swapped", got.swapaxes(-1, -2)
    rows, columns = got.shape[-2:]
    written = np.ascontiguousarray(got).reshape(*got.shape[:-2], columns, rows)
    yield "stored column by column instead of row by row", written.swapaxes(-1, -2)


def _corner(bad: Mask) -> str:
    """Recognise a tail that was left out: all bad elements at the end of one dimension."""
    for axis in range(bad.ndim):
        rest = tuple(other for other in range(bad.ndim) if other != axis)
        lines = np.asarray(bad.any(axis=rest))
        first = int(np.argmax(lines))
        if first > 0 and lines[first:].all() and bad.mean() > 0.5 * lines.mean():
            return (
                f"hint: all of them have index {first} or more in dimension {axis} "
                f"(size {bad.shape[axis]}); is the tail covered?"
            )
    return ""


def _unwritten(got: Float64, bad: Mask) -> str:
    if np.isnan(got[bad]).all():
        return "hint: outputs start as NaN; either these were never written, or 0/0 or inf - inf"
    return ""
