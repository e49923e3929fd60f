"""Two tensors as the factors of a product: which dimensions go together, how far they lie apart."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_letters

from kernelsmith.propose.rules.compiler.call import Library, Listed, Named, Viewed
from kernelsmith.propose.rules.graph import NotRecognised


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A tensor of a call, seen through strides."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def turned(self, one: int, other: int) -> "Factor":
        """With two dimensions in each other's place."""
        order = list(range(len(self.shape)))
        order[one], order[other] = order[other], order[one]
        return Factor(
            name=self.name, shape=tuple(self.shape[i] for i in order),
            stride=tuple(self.stride[i] for i in order),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """A product of matrices, or of as many pairs of them as ``batch``; 0: just one pair."""

    a: Viewed
    b: Viewed
    batch: int
    m: int
    n: int
    shape: tuple[int, ...]
    """Of the result, dense."""
    library: Library | None = None
    """The library's step for it into ``buf0``, where that is no product of matrices."""


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides in row-major order."""
    return tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))


def multiplied(a: Factor, b: Factor) -> Factors:
    """``a @ b`` where that is one product, or one of each pair of matrices.

    Raises:
        NotRecognised: It is another product.
    """
    ranks = len(a.shape), len(b.shape)
    letters = ascii_letters[: ranks[0] - 1]
    if ranks[0] >= 2 and ranks[1] == 2:
        return contracted(a, b, f"{letters}Y,YZ->{letters}Z")
    if ranks[0] == ranks[1] >= 3:
        return contracted(a, b, f"{letters}Y,{letters[:-1]}YZ->{letters}Z")
    raise NotRecognised("rules know products of matrices, or of two rows of them")


def convolved(x: Factor, weight: Factor, bias: str | None) -> Factors:
    """A convolution with a kernel of one point: the weight times the channels of all pixels.

    Raises:
        NotRecognised: It is of another form.
    """
    space = x.shape[2:]
    if len(x.shape) != len(weight.shape) or x.shape[1] != weight.shape[1] or set(
        weight.shape[2:]
    ) != {1}:  # fmt: skip
        raise NotRecognised("rules know convolutions of one point as products here")
    shape = (x.shape[0], weight.shape[0], *space)
    ones, none = (Listed(items=(each,) * len(space)) for each in (1, 0))
    step = Library(
        target="torch.convolution", operands=(Named(name=x.name), Named(name=weight.name)),
        keywords=(("stride", ones), ("padding", none), ("dilation", ones), ("transposed", False),
                  ("output_padding", none), ("groups", 1),
                  ("bias", None if bias is None else Named(name=bias))),
        result="buf0", shape=shape, stride=dense(shape),
    )  # fmt: skip
    a, b = (Viewed(name=each.name, shape=each.shape, stride=each.stride) for each in (weight, x))
    return Factors(
        a=a, b=b, batch=x.shape[0], m=weight.shape[0], n=math.prod(space), shape=shape, library=step
    )


def contracted(a: Factor, b: Factor, text: str) -> Factors:
    """An einsum of two tensors that is a product of matrices.

    Raises:
        NotRecognised: It is no such product, or its dimensions cannot be read as two.
    """
    found = re.fullmatch(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]+)", text.replace(" ", ""))
    if found is None or any(len(set(each)) != len(each) for each in found.groups()):
        raise NotRecognised(f"rules do not know the sum {text!r}")
    first, second, result = found.groups()
    if len(first) != len(a.shape) or len(second) != len(b.shape):
        raise NotRecognised(f"rules cannot tell what {text!r} adds up")
    both = [each for each in first if each in second]
    batch = "".join(each for each in both if each in result)
    summed = "".join(each for each in both if each not in result)
    left = "".join(each for each in first if each not in second)
    right = "".join(each for each in second if each not in first)
    if result != batch + left + right or not (left and right and summed):
        raise NotRecognised(f"rules do not know {text!r} as a product of matrices")
    size = dict(zip(first, a.shape, strict=True))
    if any(size.get(x, n) != n for x, n in zip(second, b.shape, strict=True)):
        raise NotRecognised(f"rules cannot tell what {text!r} adds up")
    size |= dict(zip(second, b.shape, strict=True))
    one = [_joined(a, first, each) for each in (batch, left, summed)]
    other = [_joined(b, second, each) for each in (batch, summed, right)]
    if one[2][0] != other[1][0]:
        raise NotRecognised(f"rules cannot tell what {text!r} adds up")
    kept = slice(0 if batch else 1, None)
    return Factors(
        a=_viewed(a, one[kept]), b=_viewed(b, other[kept]), batch=one[0][0] if batch else 0,
        m=one[1][0], n=other[2][0], shape=tuple(size[each] for each in result),
    )  # fmt: skip


def _viewed(factor: Factor, sides: Sequence[tuple[int, int]]) -> Viewed:
    return Viewed(
        name=factor.name, shape=tuple(size for size, _ in sides),
        stride=tuple(by for _, by in sides),
    )  # fmt: skip


def _joined(factor: Factor, letters: str, wanted: str) -> tuple[int, int]:
    """Dimensions that lie behind each other as one: its size, and how far its elements lie apart.

    They are taken in the result's order; a dimension of size one lies anywhere.
    """
    known = dict(zip(letters, zip(factor.shape, factor.stride, strict=True), strict=True))
    sides = [known[each] for each in wanted if known[each][0] != 1]
    for (_, by), (size, next_by) in pairwise(sides):
        if by != size * next_by:
            raise NotRecognised("rules do not know a product over dimensions that lie apart")
    total = math.prod(known[each][0] for each in wanted)
    return total, sides[-1][1] if sides else 1
