"""Whether indices on a device are right: judged by the values that they point at."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelsmith.evaluate.worker.cuda.walk import cut, index_of, item_of, read


def indices_wrong(
    found: Tensor, exact: Tensor, eager: Tensor, scores: Tensor, dim: int, allowed: float
) -> tuple[int, str]:
    """Count wrong indices, and say what is wrong with the first; see ``checks.indices``.

    The message begins with ``at``: the caller puts the output's path before it.
    """
    if not found.numel():
        return 0, ""
    aim = _Aim.of(scores, dim)
    theirs, mine, own = (aim.aligned(each) for each in (exact, found, eager))
    squares, finite = aim.squares()
    whole = squares.sum() / finite.sum().clamp(min=1)
    tallies: list[list[Tensor]] = [[], [], [], []]
    for part in aim.parts(mine.shape[1]):
        left, want = mine[part], aim.picked(theirs[part], part)
        got = aim.picked(left, part)
        scale = torch.maximum(squares[part] / finite[part].clamp(min=1), whole).sqrt_()
        near = (got - want).abs_() <= allowed * torch.maximum(scale, want.abs())
        right = near & got.isfinite() & want.isfinite()
        right |= (got == want) | (got.isnan() & want.isnan()) | (left == own[part])
        outside = (left < 0) | (left >= aim.size)
        marks = (outside, _repeated(left), ~right, _repeated(theirs[part]))
        for tally, mark in zip(tallies, marks, strict=True):
            first = mark.reshape(-1).byte().argmax() + part.start * mark[0].numel()
            tally += [mark.sum(), first]
    outside_, twice, wrong, excused = (_first(numbers) for numbers in read(*tallies))
    if outside_[0]:
        return _wrong_index(found, exact, outside_, f"an index lies outside 0..{aim.size - 1}")
    if twice[0] and not excused[0]:
        return _wrong_index(found, exact, twice, "an index is taken twice in one row")
    if not wrong[0]:
        return 0, ""
    values = (aim.value_at(each, wrong[1]) for each in (theirs, mine))
    reason = "the values there are " + " and ".join(f"{value:.9g}" for value in values)
    return _wrong_index(found, exact, wrong, reason)


def infer_scores(eager_indices: Tensor, inputs: Sequence[Tensor]) -> tuple[int, int, bool] | None:
    """Find the input, and its dimension, that an integer output holds the best indices of.

    Returns:
        The input's position, the dimension indexed and whether the input is to be flattened
        first; nothing where the output picks neither largest nor smallest values of any.
    """
    if eager_indices.dtype not in (torch.int64, torch.int32) or not eager_indices.numel():
        return None
    for position, tensor in enumerate(inputs):
        if not tensor.is_floating_point() or not tensor.numel():
            continue
        for dim, flattened in _readings(tuple(eager_indices.shape), tuple(tensor.shape)):
            aim = _Aim.of(tensor.reshape(-1) if flattened else tensor, dim)
            if _picks_best(aim, aim.aligned(eager_indices)):
                return position, dim, flattened
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Aim:
    """What indices point into: the dimension indexed lies between all before and all after."""

    scores: Tensor

    @classmethod
    def of(cls, scores: Tensor, dim: int) -> "_Aim":
        before, after = scores.shape[:dim], scores.shape[dim + 1 :]
        shape = (math.prod(before), scores.shape[dim], math.prod(after))
        return cls(scores=scores.detach().reshape(shape))

    @property
    def size(self) -> int:
        return int(self.scores.shape[1])

    def aligned(self, indices: Tensor) -> Tensor:
        """Give indices the three dimensions of ``scores``."""
        outer, _, inner = self.scores.shape
        return indices.detach().long().reshape(outer, indices.numel() // (outer * inner), inner)

    def parts(self, chosen: int) -> list[slice]:
        """Cut the outer dimension so that ``chosen`` values a row make no large block."""
        outer, _, inner = self.scores.shape
        return cut(outer, weight=chosen * inner)

    def slabs(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield all scores in bounded pieces, each with where in the outer dimension it lies."""
        for part in self.parts(self.size):
            for some in cut(self.size, weight=self.scores.shape[2]):
                yield part, self.scores[part, some]

    def squares(self) -> tuple[Tensor, Tensor]:
        """Return each row's sum of finite squares, and their number."""
        outer, _, inner = self.scores.shape
        square = torch.zeros((outer, 1, inner), dtype=torch.float64, device=self.scores.device)
        count = torch.zeros_like(square)
        for part, piece in self.slabs():
            finite = piece.isfinite()
            square[part] += piece.double().masked_fill(~finite, 0.0).square_().sum(1, keepdim=True)
            count[part] += finite.sum(1, keepdim=True)
        return square, count

    def picked(self, chosen: Tensor, part: slice) -> Tensor:
        """Return what indices point at; those out of range, which would stop a GPU, are moved."""
        return self.scores[part].gather(1, chosen.clamp(0, self.size - 1)).double()

    def value_at(self, chosen: Tensor, flat: int) -> float:
        """Return what the index at a flat position points at."""
        row, _, column = index_of(flat, chosen.shape)
        at = int(item_of(chosen, flat))
        return float(self.scores[row, min(max(at, 0), self.size - 1), column].item())


def _first(numbers: list[float]) -> tuple[int, int]:
    """Join (count, first place) of every part into one."""
    counts, places = numbers[::2], numbers[1::2]
    where = next((at for at, count in zip(places, counts, strict=True) if count), 0)
    return int(sum(counts)), int(where)


def _wrong_index(
    found: Tensor, exact: Tensor, wrong: tuple[int, int], reason: str
) -> tuple[int, str]:
    count, flat = wrong
    mine, theirs = (item_of(each, flat) for each in (found, exact))
    return count, (
        f"at {index_of(flat, found.shape)}: expected index {theirs}, found {mine}; "
        f"{reason}; {count:,} of {found.numel():,} are wrong"
    )


def _readings(shape: tuple[int, ...], have: tuple[int, ...]) -> Iterator[tuple[int, bool]]:
    """Yield how indices of ``shape`` could point into a tensor of the shape ``have``."""
    for dim in range(len(have)):
        rest = have[:dim] + have[dim + 1 :]
        several = len(shape) == len(have) and 1 <= shape[dim] <= have[dim]
        if shape == rest or (several and shape[:dim] + shape[dim + 1 :] == rest):
            yield dim, False
    if math.prod(shape) == 1 and len(shape) in (0, len(have)):
        yield 0, True


def _picks_best(aim: _Aim, chosen: Tensor) -> bool:
    """Whether indices pick the largest values, in falling order, or the smallest, in rising."""
    least, most = chosen.aminmax()
    faults, up, down = [(least < 0) | (most >= aim.size)], [], []
    picked = torch.cat([aim.picked(chosen[part], part) for part in aim.parts(chosen.shape[1])])
    # torch takes NaN for the largest number; as infinity it compares that way.
    picked = picked.masked_fill_(picked.isnan(), math.inf)
    last = picked[:, -1:]
    above, below = (picked > last).sum(1, keepdim=True), (picked < last).sum(1, keepdim=True)
    up.append((picked[:, 1:] > picked[:, :-1]).any())
    down.append((picked[:, 1:] < picked[:, :-1]).any())
    faults += [_repeated(chosen[part]).any() for part in aim.parts(chosen.shape[1])]
    for part, piece in aim.slabs():
        odd = piece.isnan()
        piece = piece.masked_fill(odd, math.inf)
        down.append(odd.any())
        above[part] -= (piece > last[part]).sum(1, keepdim=True)
        below[part] -= (piece < last[part]).sum(1, keepdim=True)
    up.append(above.any())
    down.append(below.any())
    wrong, rises, falls = (any(numbers) for numbers in read(faults, up, down))
    return not wrong and not (rises and falls)


def _repeated(indices: Tensor) -> Tensor:
    """Mark second and later uses of an index along the middle dimension."""
    marks = torch.zeros_like(indices, dtype=torch.bool)
    if indices.shape[1] > 1:
        ordered, order = indices.sort(dim=1, stable=True)
        same = ordered[:, 1:] == ordered[:, :-1]
        marks.scatter_(1, order[:, 1:], same)
    return marks
