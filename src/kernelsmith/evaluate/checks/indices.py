"""Whether indices (argmax, topk, sort) are right: judged by the values that they point at."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.tensors import Float64, Tensor

Indices = npt.NDArray[np.int64]


def check_indices(found: Tensor, answer: Answer, *, budget: Budget) -> Mismatch | Measured:
    """Accept an index whose value is within the budget of the value that float64 picks.

    Ties therefore go either way. An index out of range or taken twice is wrong.
    """
    scores, dim = answer.scores, answer.dim
    assert scores is not None
    assert dim is not None
    if found.values.size == 0:  # an empty batch: its rows cannot be told from its columns
        return Measured(path=answer.path, error=0.0, eager_error=0.0)
    mine, theirs, eager = (
        _aligned(each.values.astype(np.int64), scores, dim)
        for each in (found, answer.exact, answer.eager)
    )
    size = scores.shape[dim]
    outside = (mine < 0) | (mine >= size)
    if outside.any():
        return _mismatch(found, answer, outside, f"an index lies outside 0..{size - 1}")
    twice = _repeated(mine, dim)
    if twice.any() and not _repeated(theirs, dim).any():
        return _mismatch(found, answer, twice, "an index is taken twice in one row")
    got = np.take_along_axis(scores, mine, dim)
    want = np.take_along_axis(scores, theirs, dim)
    room = budget.allowed * np.maximum(_scale(scores, dim), np.abs(want))
    finite = np.isfinite(got) & np.isfinite(want)
    with np.errstate(all="ignore"):
        right = finite & (np.abs(got - want) <= room)
    right |= (got == want) | (np.isnan(got) & np.isnan(want)) | (mine == eager)
    if right.all():
        return Measured(path=answer.path, error=0.0, eager_error=0.0)
    first = np.unravel_index(np.argmin(right), right.shape)
    reason = f"the values there are {want[first]:.9g} and {got[first]:.9g}"
    return _mismatch(found, answer, ~right, reason)


def infer_scores(answer: Answer, inputs: Sequence[Tensor]) -> tuple[Float64, int] | None:
    """Find the input, and its dimension, that an integer output holds the best indices of.

    Returns:
        The input as float64 (flattened where the reference indexed it so) and the dimension
        indexed, or nothing where the output picks neither largest nor smallest values of any.
    """
    if answer.eager.dtype not in ("int64", "int32") or answer.eager.values.size == 0:
        return None
    for tensor in inputs:
        if not tensor.is_float or tensor.values.size == 0:
            continue
        for scores, dim in _readings(answer.eager.shape, tensor):
            chosen = _aligned(answer.eager.values.astype(np.int64), scores, dim)
            if _picks_best(chosen, scores, dim):
                return scores, dim
    return None


def _readings(shape: tuple[int, ...], tensor: Tensor) -> Iterator[tuple[Float64, int]]:
    """Yield how indices of ``shape`` could point into ``tensor``."""
    have = tensor.shape
    for dim in range(len(have)):
        rest = have[:dim] + have[dim + 1 :]
        several = len(shape) == len(have) and 1 <= shape[dim] <= have[dim]
        if shape == rest or (several and shape[:dim] + shape[dim + 1 :] == rest):
            yield tensor.float64(), dim
    if math.prod(shape) == 1 and len(shape) in (0, len(have)):
        yield tensor.float64().reshape(-1), 0


def _aligned(indices: Indices, scores: Float64, dim: int) -> Indices:
    """Give indices as many dimensions as ``scores``, with those chosen along ``dim``."""
    rest = scores.shape[:dim] + scores.shape[dim + 1 :]
    if indices.shape == rest:
        return np.expand_dims(indices, dim)
    return indices.reshape(*scores.shape[:dim], -1, *scores.shape[dim + 1 :])


def _picks_best(chosen: Indices, scores: Float64, dim: int) -> bool:
    if chosen.min() < 0 or chosen.max() >= scores.shape[dim] or _repeated(chosen, dim).any():
        return False
    picked = np.take_along_axis(scores, chosen, dim)
    if np.isnan(scores).any():
        # torch takes NaN for the largest number; as infinity it compares that way.
        picked, whole = (np.where(np.isnan(each), np.inf, each) for each in (picked, scores))
        return _leads(picked, whole, dim)
    return _leads(picked, scores, dim) or _leads(-picked, -scores, dim)


def _leads(picked: Float64, scores: Float64, dim: int) -> bool:
    """Whether the picked values fall, and none left out is larger than the last of them."""
    last = np.take(picked, [-1], axis=dim)
    falls = bool((np.diff(picked, axis=dim) <= 0).all()) if picked.shape[dim] > 1 else True
    above = (scores > last).sum(axis=dim), (picked > last).sum(axis=dim)
    return falls and bool(np.array_equal(*above))


def _repeated(indices: Indices, dim: int) -> npt.NDArray[np.bool_]:
    """Mark second and later uses of an index along ``dim``."""
    marks = np.zeros(indices.shape, dtype=np.bool_)
    if indices.shape[dim] > 1:
        order = np.argsort(indices, axis=dim, kind="stable")
        ordered = np.take_along_axis(indices, order, dim)
        same = np.diff(ordered, axis=dim, prepend=-1) == 0
        np.put_along_axis(marks, order, same, dim)
    return marks


def _scale(scores: Float64, dim: int) -> Float64:
    """Return the size of scores, row by row, never below that of the whole tensor."""
    finite = np.isfinite(scores)
    squares = np.square(np.where(finite, scores, 0.0))
    row = squares.sum(axis=dim, keepdims=True) / np.maximum(1, finite.sum(axis=dim, keepdims=True))
    return np.asarray(np.sqrt(np.maximum(row, squares.sum() / max(1, finite.sum()))))


def _mismatch(found: Tensor, answer: Answer, wrong: npt.NDArray[np.bool_], reason: str) -> Mismatch:
    # ``wrong`` has the dimension indexed even where the output does not; the order is the same.
    marks = wrong.reshape(found.shape)
    where = tuple(int(i) for i in np.unravel_index(np.argmax(marks), marks.shape))
    message = (
        f"{answer.path} at {where}: expected index {answer.exact.values[where]}, "
        f"found {found.values[where]}; {reason}; {int(marks.sum()):,} of {marks.size:,} are wrong"
    )
    return Mismatch(path=answer.path, kind=Kind.INDEX, message=message)
