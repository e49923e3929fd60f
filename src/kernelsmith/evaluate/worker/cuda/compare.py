"""The judge's comparisons on the device where the tensors lie, in bounded extra memory.

Norm and words are those of ``checks``; only numbers leave the device, most often in one read.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelsmith.evaluate.checks.answer import Kind
from kernelsmith.evaluate.checks.norm import blocks, overflow_edge, row_length
from kernelsmith.evaluate.worker.cuda.indices import indices_wrong, infer_scores
from kernelsmith.evaluate.worker.cuda.walk import cut, index_of, item_of, pairs, part_of, read, zero

__all__ = [
    "Distance",
    "discrete_differs",
    "distance",
    "explain_float",
    "indices_wrong",
    "infer_scores",
    "is_finite",
    "relative",
    "rms",
]

_ALL = "hint: every element found is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far one tensor is from the exact one; see ``checks.norm.Distance``."""

    error: float
    row: int
    strangers: int
    excess: float
    bad: int
    """Elements off by more than ``allowed`` times the larger of the exact one and the rms;
    counted only where strangers or the error refuse the tensor, else 0."""
    where: int
    """Flat index of the element to show: the first stranger, else the worst one of the worst
    row; merely the first one of that row where nothing refuses the tensor."""


def distance(
    found: Tensor, exact: Tensor, eager: Tensor, *, atol: float, rtol: float, allowed: float
) -> Distance:
    """Measure ``found`` against ``exact``; ``eager`` says where the reference is in doubt.

    Who asks for the error alone (eager's own, say) passes infinite ``atol`` and ``allowed``:
    one walk and one read then do.
    """
    sides = _Sides(found=found, exact=exact, eager=eager)
    spans = sides.spans()
    if not spans:
        return Distance(error=0.0, row=0, strangers=0, excess=0.0, bad=0, where=0)
    rows = _Rows(sides)
    peaks, errors, places = read([rows.put(span) for span in spans], *rows.worst())
    odd = [span for span, peak in zip(spans, peaks, strict=True) if not math.isfinite(peak)]
    # A row's norm is no less than its largest element: most tensors need no look at elements.
    low = (atol / 2) * (atol / 2)
    wide = [span for span, peak in zip(spans, peaks, strict=True) if low <= peak < math.inf]
    counts, firsts, excesses = [0.0], [0.0], [0.0]
    if odd or wide:
        top = sides.overflow_edge(allowed)
        settled = [rows.settle(span, top) for span in odd]
        shares = [_shares(*sides.resolved(span), atol, rtol).amax() for span in odd]
        shares += [_shares(*sides.difference(span), atol, rtol).amax() for span in wide]
        counts, firsts, excesses, errors, places = read(
            [count for count, _ in settled], [first for _, first in settled], shares, *rows.worst()
        )
    worst = errors.index(max(errors))
    row, strangers = int(places[worst]), int(sum(counts))
    bad, where = 0.0, float(row * sides.length)
    if strangers or not errors[worst] <= allowed:
        ((bad, where),) = read([_count_bad(sides, allowed), sides.worst_of(row)])
        where = next((at for at, count in zip(firsts, counts, strict=True) if count), where)
    return Distance(
        error=errors[worst],
        row=row,
        strangers=strangers,
        excess=max(math.inf if math.isnan(each) else each for each in excesses),
        bad=int(bad),
        where=int(where),
    )


def explain_float(
    path: str,
    found: Tensor,
    exact: Tensor,
    eager: Tensor,
    seen: Distance,
    *,
    kind: str,
    allowed: float,
    eager_error: float,
    atol: float,
    rtol: float,
) -> str:
    """Say what is wrong with a floating output as ``checks.floats`` does, with a hint if any."""
    sides = _Sides(found=found, exact=exact, eager=eager)
    where, bad = seen.where, seen.bad
    if kind == Kind.TOLERANCE:
        bad, where = _beyond(sides, atol=atol, rtol=rtol)
    got, want = (item_of(each, where) for each in (found, exact))
    values = f"{path} at {index_of(where, exact.shape)}: expected {want:.9g}, found {got:.9g}"
    counted = max(1, seen.strangers if kind == Kind.NONFINITE else bad)
    count = f"{counted:,} of {exact.numel():,} elements"
    if kind == Kind.NONFINITE:
        line = f"{values}; {count} are NaN or infinite on one side only"
    elif kind == Kind.TOLERANCE:
        line = (
            f"{values}; {count} exceed the task's tolerance (atol {atol:g}, "
            f"rtol {rtol:g}), the worst by a factor of {seen.excess:.3g}"
        )
    else:
        line = (
            f"{values}; the worst row is off by {seen.error:.3g} where {allowed:.3g} is allowed "
            f"(eager: {eager_error:.3g}); {count} are far off"
        )
    top = sides.overflow_edge(allowed)
    return "\n".join(filter(None, (line, _hint(sides, top, seen.strangers))))


def rms(exact: Tensor) -> float:
    """Return the root mean square of the finite elements; 0 where there are none."""
    if not exact.numel():
        return 0.0
    # One look at each element where all are finite, and their squares; else a dozen.
    norms = [torch.linalg.vector_norm(part, dtype=torch.float64) for part, _ in pairs(exact, exact)]
    norm = float(torch.linalg.vector_norm(torch.stack(norms)))
    if math.isfinite(norm * norm):
        return norm / math.sqrt(exact.numel())
    squares, counts = [zero(exact)], [zero(exact)]
    for part, _ in pairs(exact, exact):
        finite = part.isfinite()
        squares.append(part.double().masked_fill(~finite, 0.0).square_().sum())
        counts.append(finite.sum())
    square, count = (sum(numbers) for numbers in read(squares, counts))
    return math.sqrt(square / count) if count else 0.0


def is_finite(tensor: Tensor) -> bool:
    """Whether no element is NaN or infinite."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    return bool(torch.stack(tensor.detach().aminmax()).isfinite().all().item())


def relative(found: Tensor, other: Tensor) -> Tensor:
    """Return how far two tensors are apart as a 0-d float64 tensor, without waiting for it.

    Floats: the 2-norm of the difference over that of ``other``; NaN and infinities that stand
    in the same places are left out, any others make it infinite, as does a norm that
    overflows. Integers and bools: the share of unequal elements.
    """
    if not (found.is_floating_point() or other.is_floating_point()):
        unequal = [zero(found), *((a != b).sum().double() for a, b in pairs(found, other))]
        return torch.stack(unequal).sum() / max(1, found.numel())
    apart, sizes = [zero(found)], [zero(found)]
    for a, b in pairs(found, other):
        same = (a == b) | (a.isnan() & b.isnan())
        apart.append(torch.linalg.vector_norm((a.double() - b).masked_fill_(same, 0.0)))
        known = torch.nan_to_num(b.double(), nan=0.0, posinf=0.0, neginf=0.0)
        sizes.append(torch.linalg.vector_norm(known))
    above, below = (torch.linalg.vector_norm(torch.stack(each)) for each in (apart, sizes))
    return torch.where(above == 0, 0.0, over(above, below))


def over(above: Tensor, below: Tensor) -> Tensor:
    """One norm over another; infinite where one of them is not finite."""
    share = above / below.clamp(min=torch.finfo(torch.float64).tiny)
    return torch.where(above.isfinite() & below.isfinite(), share, math.inf)


def discrete_differs(found: Tensor, exact: Tensor) -> int:
    """Count unequal elements."""
    unequal = [zero(found), *((a != b).sum() for a, b in pairs(found, exact))]
    return int(sum(read(unequal)[0]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sides:
    """What is compared, as rows in logical order."""

    found: Tensor
    exact: Tensor
    eager: Tensor

    def __post_init__(self) -> None:
        assert self.found.shape == self.exact.shape == self.eager.shape

    @property
    def length(self) -> int:
        return row_length(tuple(self.exact.shape))

    @property
    def together(self) -> int:
        """Elements that numpy judges as one: it leaves the fast path for all or none of them."""
        return next(blocks(self.exact.numel(), self.length)).stop

    def spans(self) -> list[slice]:
        """Cut the elements into blocks of whole rows; a last, shorter row is on its own."""
        count = self.exact.numel()
        if not count:
            return []
        whole = count - count % self.length
        return cut(whole, unit=self.together) + [slice(whole, count)] * (whole < count)

    def difference(self, span: slice) -> tuple[Tensor, Tensor]:
        """Return error and exact values, row by row, of a span where all is finite."""
        want = self._part(self.exact, span).double()
        delta = torch.sub(part_of(self.found, span), want)
        width = min(self.length, want.numel())
        return delta.view(-1, width), want.view(-1, width)

    def values(self, span: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Return the three sides of a span as flat float64."""
        got, want, hint = (self._part(each, span) for each in (self.found, self.exact, self.eager))
        return got.double(), want.double(), hint.double()

    def _part(self, tensor: Tensor, span: slice) -> Tensor:
        """A span of one side, where the candidate's is: what is exact may be kept on the host."""
        return part_of(tensor, span).to(self.found.device)

    def resolved(self, span: slice) -> tuple[Tensor, Tensor]:
        """Return error and expected values of a span, NaN and infinity put right."""
        got, want, hint = self.values(span)
        return _resolve(got, want, hint, math.inf)[1], _either(want, hint)

    def worst_of(self, row: int) -> Tensor:
        """Return the flat index of a row's worst element."""
        start = row * self.length
        span = slice(start, min(start + self.length, self.exact.numel()))
        return self.resolved(span)[0].abs_().argmax() + start

    def overflow_edge(self, allowed: float) -> float:
        """Return the size from which on an exact value may honestly be rounded to infinity."""
        return overflow_edge(str(self.eager.dtype).removeprefix("torch."), allowed)


class _Rows:
    """Squares of error and exact values of every row, and how many elements count in them."""

    def __init__(self, sides: _Sides) -> None:
        self._sides = sides
        count, length = sides.exact.numel(), sides.length
        size, device = -(-count // length), sides.found.device
        self._deltas = torch.empty(size, dtype=torch.float64, device=device)
        self._norms = torch.empty(size, dtype=torch.float64, device=device)
        self._sizes = torch.full((size,), float(length), dtype=torch.float32, device=device)
        if count % length:
            self._sizes[-1] = count % length

    def put(self, span: slice) -> Tensor:
        """Fill a span's rows and return the largest square; not finite where any sum is not."""
        rows = self._rows(span)
        delta, want = self._sides.difference(span)
        _row_squares(delta, self._deltas[rows])
        _row_squares(want, self._norms[rows])
        finite = self._norms[rows].amax().isfinite()
        return torch.where(finite, self._deltas[rows].amax(), math.inf)

    def settle(self, span: slice, top: float) -> tuple[Tensor, Tensor]:
        """Fill a span's rows anew where some are not finite; count strangers, find the first."""
        rows = self._rows(span)
        width = min(self._sides.length, span.stop - span.start)
        got, want, hint = self._sides.values(span)
        sure, delta, odd = _resolve(got, want, hint, top)
        sure = sure.view(-1, width) | ~self._apart(rows)[:, None]
        for kept, values in ((self._deltas, delta), (self._norms, _either(want, hint))):
            counted = values.view(-1, width).masked_fill(~sure, 0.0)
            _row_squares(counted, kept[rows])
        self._sizes[rows] = sure.sum(dim=1).float()
        return odd.sum(), odd.byte().argmax() + span.start

    def worst(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the largest errors and their rows, one for every block of rows."""
        mean = self._norms.sum() / self._sizes.sum(dtype=torch.float64)
        # An exact tensor of zeros has no scale of its own; its errors are absolute.
        scale = torch.where(mean > 0, mean, 1.0)
        errors, places = [], []
        for part in cut(self._deltas.numel()):
            size = self._sizes[part].double()
            below = torch.maximum(self._norms[part], size * scale)
            error = (self._deltas[part] / below).sqrt_().masked_fill_(size == 0, 0.0)
            error.masked_fill_(error.isnan(), math.inf)
            errors.append(error.amax())
            places.append(error.argmax() + part.start)
        return errors, places

    def _rows(self, span: slice) -> slice:
        length = self._sides.length
        return slice(span.start // length, -(-span.stop // length))

    def _apart(self, rows: slice) -> Tensor:
        """Mark the rows that numpy looks at again: all of those that it judges together."""
        odd = ~(self._deltas[rows] + self._norms[rows]).isfinite()
        count, together = odd.numel(), self._sides.together // self._sides.length
        padded = torch.nn.functional.pad(odd, (0, -count % together)).view(-1, together)
        return padded.any(dim=1, keepdim=True).expand_as(padded).reshape(-1)[:count]


def _row_squares(values: Tensor, into: Tensor) -> None:
    """Sum squares row by row, with no copy of the values; a norm alone may hide an overflow."""
    torch.linalg.vector_norm(values, dim=1, out=into)
    into.square_()


def _resolve(got: Tensor, want: Tensor, hint: Tensor, top: float) -> tuple[Tensor, Tensor, Tensor]:
    """Judge elements where NaN or infinity plays a part, as ``checks.norm.resolve`` does."""
    delta, finite, known = got - want, want.isfinite(), hint.isfinite()
    sure = delta.isfinite() & known
    agrees = _same_class(got, want) | _same_class(got, hint)
    agrees |= got.isinf() & (want.abs() >= top) & (got.sign() == want.sign())
    delta = torch.where(finite, delta, got - hint)
    both = got.isfinite() & (finite | known)
    return sure, delta.masked_fill_(~both, 0.0), ~agrees


def _same_class(first: Tensor, second: Tensor) -> Tensor:
    """Whether both are NaN, both the same infinity, or both finite."""
    finite = first.isfinite() & second.isfinite()
    return finite | (first.isnan() & second.isnan()) | (first.isinf() & (first == second))


def _either(want: Tensor, hint: Tensor) -> Tensor:
    return torch.where(want.isfinite(), want, hint)


def _shares(delta: Tensor, want: Tensor, atol: float, rtol: float) -> Tensor:
    """Return each element's error over what the tolerance allows; ``delta`` is used up."""
    size, bound = delta.abs_(), want.abs().mul_(rtol).add_(atol)
    return torch.where(size == 0, 0.0, size / bound)


def _count_bad(sides: _Sides, allowed: float) -> Tensor:
    """Count elements far off by the tensor's own scale."""
    squares, counts, bad = zero(sides.exact), zero(sides.exact), zero(sides.exact)
    for span in sides.spans():
        got, want, hint = sides.values(span)
        sure = (got - want).isfinite() & hint.isfinite()
        squares += want.masked_fill(~sure, 0.0).square_().sum()
        counts += sure.sum()
    scale = (squares / counts).sqrt()
    scale = torch.where(scale > 0, scale, 1.0)
    for span in sides.spans():
        delta, want = sides.resolved(span)
        bad += (delta.abs_() > allowed * torch.maximum(want.abs_(), scale)).sum()
    return bad


def _beyond(sides: _Sides, *, atol: float, rtol: float) -> tuple[int, int]:
    """Count the elements that exceed the tolerance, and find the worst."""
    counts, peaks, places = [], [], []
    for span in sides.spans():
        share = torch.nan_to_num(_shares(*sides.resolved(span), atol, rtol), nan=0.0)
        counts.append((share > 1).sum())
        peaks.append(share.amax())
        places.append(share.argmax() + span.start)
    count, peak, place = read(counts, peaks, places)
    return int(sum(count)), int(place[peak.index(max(peak))])


def _hint(sides: _Sides, top: float, strangers: int) -> str:
    """Recognise what a few reductions can: an output that is blank, or unwritten in places."""
    tallies: list[list[Tensor]] = [[], [], [], [], []]
    start, other = (part_of(each, slice(0, 1)) for each in (sides.found, sides.exact))
    for span in sides.spans():
        got, want, hint = sides.values(span)
        odd = _resolve(got, want, hint, top)[2]
        blank = got.isnan()
        marks = (got != 0, ~blank, got != start, want != other, odd & blank)
        for tally, mark in zip(tallies, marks, strict=True):
            tally.append(mark.sum())
    written, known, varied, expected, lost = (sum(numbers) for numbers in read(*tallies))
    if sides.found.numel() > 1:
        if not written:
            return f"{_ALL} 0; was the kernel launched and its output returned?"
        if not known:
            return f"{_ALL} NaN; outputs start as NaN, so nothing was written"
        if not varied and expected:
            return f"{_ALL} {start.item():.9g}"
    if strangers and lost == strangers:
        return "hint: outputs start as NaN; either these were never written, or 0/0 or inf - inf"
    return ""
