"""A graph whose values may miss channels or space: what reductions behind a convolution leave.

A value's layout names its dimensions: ``b`` (images), ``c`` (channels), ``s0`` and so on (space),
``s0q`` (windows of space), or ``1`` where one was reduced and kept. ``("c",)`` is one value per
channel for all images, ``()`` is one number. Space is reduced as a whole or not at all.
"""

from kernelsmith.propose.rules.graph import Builder, Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.operators import Operators

Layout = tuple[str, ...]
COLUMN: Layout = ("c",)
STARTS = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
"""What is reduced here, and the value that changes nothing."""


def has_space(layout: Layout) -> bool:
    """Whether there is one value per pixel."""
    return any(each.startswith("s") for each in layout)


def has_windows(layout: Layout) -> bool:
    """Whether there is one value per window."""
    return any(each.endswith("q") for each in layout)


def extent(layout: Layout) -> str:
    """What the kernels call the number of values in space."""
    return "windows" if has_windows(layout) else "pixels"


class Layouts(Builder):
    """Builds nodes and knows the layout of each.

    ``dims`` are those that the next reduction goes along, as torch counts them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layout: dict[int, Layout] = {}
        self.dims: tuple[int, ...] = ()
        self.met: dict[int, set[int | None]] = {}
        """By parameter, how many dimensions stand behind the channels where it is used; ``None``
        where there are no channels."""
        self.rank: dict[int, int] = {}
        """By parameter, the fewest dimensions of what it is used with: more would be added to."""
        self.spreads: set[int] = set()
        """Parameters that give a value the channels that it has not."""
        self._reduced: list[str] = []

    def placed(self, node: Node, layout: Layout) -> int:
        """A node with its layout."""
        number = self.add(node)
        self.layout[number] = layout
        return number

    def constant(self, value: float) -> int:
        """A number known now."""
        number = super().constant(value)
        self.layout[number] = ()
        return number

    def count(self, what: str) -> int:
        """How many values the last reduction took together."""
        assert what == "dim"
        made = self.constant(1.0)
        for axis in self._axes(self._reduced):
            counted = "channels" if axis == "c" else extent(tuple(self._reduced))
            made = self._times(made, self.counted(counted))
        return made

    def counted(self, what: str) -> int:
        """A number that the kernels know."""
        return self.placed(Node(kind=Kind.COUNT, shape=Shape.SCALAR, text=what), ())

    def _times(self, a: int, b: int) -> int:
        return b if self.nodes[a].kind is Kind.CONSTANT else self.binary("mul", a, b)

    def unary(self, op: str, a: int) -> int:
        """Apply an operator to each value."""
        number = super().unary(op, a)
        self.layout[number] = self.layout[a]
        return number

    def binary(self, op: str, a: int, b: int) -> int:
        """Apply an operator to each pair of values, broadcasting."""
        number = super().binary(op, a, b)
        self.layout[number] = self._joined(a, b)
        return number

    def select(self, condition: int, a: int, b: int) -> int:
        """Choose per element."""
        number = super().select(condition, a, b)
        self.layout[number] = self._joined(condition, a, b)
        return number

    def _joined(self, *numbers: int) -> Layout:
        tensors = [self.layout[n] for n in numbers if self.layout[n] not in ((), COLUMN)]
        columns = [n for n in numbers if self.layout[n] == COLUMN]
        if not tensors:
            return COLUMN if columns else ()
        if len({len(each) for each in tensors}) > 1:
            raise NotRecognised("rules know reduced dimensions that are kept, here")
        joined = []
        for labels in zip(*tensors, strict=True):
            known = {each for each in labels if each != "1"}
            if len(known) > 1:
                raise NotRecognised("rules do not know how these tensors broadcast")
            joined.append(known.pop() if known else "1")
        for n in numbers:
            if self.layout[n] in ((), COLUMN):
                for leaf in self._leaves(n):
                    self.rank[leaf] = min(len(joined), self.rank.get(leaf, len(joined)))
        for n in (n for each in columns for n in self._leaves(each) if self.layout[n]):
            channels = len(joined) > 1 and joined[1] in ("c", "1")
            self.met.setdefault(n, set()).add(len(joined) - 2 if channels else None)
            if channels and joined[1] == "1":
                self.spreads.add(n)
        if columns and len(joined) > 1 and joined[1] == "1":
            joined[1] = "c"
        return tuple(joined)

    def _leaves(self, n: int) -> list[int]:
        node = self.nodes[n]
        if node.kind is Kind.PARAMETER:
            return [n]
        return [leaf for each in node.args for leaf in self._leaves(each)]

    def _place(self, layout: Layout) -> list[int]:
        rank = len(layout)
        if any(not -rank <= d < rank for d in self.dims) or not self.dims:
            raise NotRecognised("rules must know the dimensions of a reduction")
        return sorted({d % rank for d in self.dims})

    def _axes(self, labels: list[str]) -> list[str]:
        """``p`` and ``c``, as far as they are there."""
        space = ["p"] if any(each.startswith("s") for each in labels) else []
        return space + (["c"] if "c" in labels else [])

    def axes(self, a: int) -> tuple[list[str], Layout]:
        """What a reduction of this value takes together, and what it leaves, dimensions kept."""
        layout = self.layout[a]
        if len(layout) < 2:
            raise NotRecognised("rules know reductions of what a convolution gives")
        at = self._place(layout)
        self._reduced = [layout[d] for d in at]
        left = tuple("1" if d in at else each for d, each in enumerate(layout))
        partly = has_space(left) and has_space(tuple(self._reduced))
        if 0 in at or partly:
            raise NotRecognised("rules know reductions over channels and over all of space")
        return self._axes(self._reduced), left

    def reduce(self, op: str, a: int, *, keep: bool = True) -> int:
        """Space first, then channels."""
        if op not in STARTS:
            raise NotRecognised(f"rules do not know {op} behind a convolution")
        axes, left = self.axes(a)
        reduced = list(self._reduced)
        for axis in axes:
            before = self.layout[a]
            gone = tuple("1" if _is(each, axis) else each for each in before)
            a = self.placed(
                Node(kind=Kind.REDUCE, op=op, args=(a,), shape=Shape.FULL, text=axis), gone
            )
        assert self.layout[a] == left
        self._reduced = reduced
        return a if keep else self.view(a, Shape.SQUEEZED)

    def windows(self, op: str, a: int) -> int:
        """Reduce every window of space."""
        layout = tuple(f"{each}q" if each.startswith("s") else each for each in self.layout[a])
        node = Node(kind=Kind.REDUCE, op=op, args=(a,), shape=Shape.FULL, text="w")
        return self.placed(node, layout)

    def moments(self, a: int, groups: str) -> tuple[int, int]:
        """Mean, and sum of centred squares, over space and the channels of a group.

        ``groups`` is their number, in Python.
        """
        whole = groups == "1"
        layout = tuple(
            each if each == "b" or (each == "c" and not whole) else "1" for each in self.layout[a]
        )
        mean, squares = (
            self.placed(
                Node(kind=Kind.REDUCE, op=op, args=(a,), shape=Shape.FULL, text=groups), layout
            )
            for op in ("mean", "squares")
        )
        return mean, squares

    def total(self, a: int) -> int:
        """Refuse."""
        raise NotRecognised("rules know no sum over all images behind a convolution")

    def view(self, a: int, shape: Shape) -> int:
        """Without the dimensions that were reduced."""
        if shape is not Shape.SQUEEZED:
            return a
        layout = self.layout[a]
        return self.without(a, self._place(layout))

    def without(self, a: int, dims: list[int]) -> int:
        """The same values without some dimensions of one element."""
        layout = self.layout[a]
        if any(layout[d] != "1" for d in dims):
            raise NotRecognised("rules know squeezed dimensions that were reduced")
        left = tuple(each for d, each in enumerate(layout) if d not in dims)
        node = Node(kind=Kind.VIEW, args=(a,), shape=Shape.FULL, text=" ".join(left))
        return self.placed(node, left)


def _is(label: str, axis: str) -> bool:
    return label == "c" if axis == "c" else label.startswith("s")


class Moments(Operators):
    """Variances over space are joined from pieces: one pass, and no worse than two."""

    def __init__(self, build: Layouts) -> None:
        super().__init__(build)
        self._build = build

    def variance(self, x: int, *, keep: bool, unbiased: bool) -> int:
        """Over what the last reduction goes along."""
        build = self._build
        axes, _ = build.axes(x)
        if "p" not in axes:
            return super().variance(x, keep=keep, unbiased=unbiased)
        apart = "c" in build.layout[x] and "c" not in axes
        _, squares = build.moments(x, "channels" if apart else "1")
        count = build.count("dim")
        if unbiased:
            count = build.binary("sub", count, build.constant(1.0))
        made = build.binary("div", squares, count)
        return made if keep else build.view(made, Shape.SQUEEZED)

    def total_mean(self, x: int) -> int:
        """Refuse."""
        return self._build.total(x)
