"""What a kernel over a grid of axes computes: which element of which tensor meets which."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kernelsmith.propose.rules.graph import Kind, Node


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Where along one dimension of a tensor an element is read; neither: it has one element."""

    axis: int | None = None
    """The axis of the grid that runs along it."""
    index: int | None = None
    """The leaf that holds the numbers to read at."""
    wraps: bool = False
    """Whether negative numbers count from the end."""

    @property
    def single(self) -> bool:
        """Whether there is but one element along it."""
        return self.axis is None and self.index is None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One way of reading one tensor."""

    text: str
    """Python that gives the tensor."""
    coordinates: tuple[Coordinate, ...]
    integer: bool = False
    """Whether it holds numbers of elements."""
    sizes: tuple[str, ...] = ()
    """Of a float32 buffer of the candidate's own, in Python; none: a tensor of the task."""

    view: str = ""
    """Python that ``text`` is set to beforehand; none: it is there."""

    def size(self, dim: int) -> str:
        """How many elements there are along a dimension, in Python."""
        return self.sizes[dim] if self.sizes else f"{self.text}.shape[{dim}]"

    def place(self, axis: int) -> int | None:
        """The dimension that an axis runs along."""
        return next((j for j, c in enumerate(self.coordinates) if c.axis == axis), None)

    def stride(self, dim: int) -> str:
        """Elements from one to the next along a dimension, in Python; ``1`` where that is known."""
        if all(c.single for c in self.coordinates[dim + 1 :]):
            return "1"
        return f"{self.text}.shape[{dim + 1} :].numel()"


@dataclass(frozen=True, slots=True)
class Term:
    """A summand of an offset: a group's position or a number read, times a stride."""

    stride: str
    """Python."""
    group: int | None = None
    index: int | None = None
    dim: int = 0
    wraps: bool = False


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Axes put together in groups: those that run side by side in every tensor are one."""

    leaves: tuple[Leaf, ...]
    groups: tuple[tuple[int, ...], ...]
    """Axes of each group; those that are kept first, in the order of the output."""

    def terms(self, number: int) -> list[Term]:
        """The offset of a leaf's element."""
        leaf = self.leaves[number]
        made = []
        for g, axes in enumerate(self.groups):
            dim = leaf.place(axes[-1])
            if dim is not None:
                made.append(Term(stride=leaf.stride(dim), group=g))
        for dim, c in enumerate(leaf.coordinates):
            if c.index is not None:
                stride = leaf.stride(dim)
                made.append(Term(stride=stride, index=c.index, dim=dim, wraps=c.wraps))
        return made

    def moves(self, number: int, group: int) -> bool:
        """Whether a leaf's element depends on a group, by itself or by a number read."""
        return any(
            t.group == group or (t.index is not None and self.moves(t.index, group))
            for t in self.terms(number)
        )

    def size(self, axis: int) -> str:
        """How long an axis is, in Python."""
        found = [leaf for leaf in self.leaves if leaf.place(axis) is not None]
        leaf = min(found, key=lambda each: bool(each.sizes))
        dim = leaf.place(axis)
        assert dim is not None
        return leaf.size(dim)

    def length(self, group: int) -> str:
        """How long a group is, in Python."""
        return " * ".join(self.size(axis) for axis in self.groups[group])

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When shapes and dtypes are what the kernel is made for."""
        like = self.like
        made = [f"{like}.dtype in {dtypes}"]
        for leaf in self.leaves:
            if leaf.sizes:
                continue
            made.append(f"{leaf.text}.dim() == {len(leaf.coordinates)}")
            kind = "torch.int64" if leaf.integer else f"{like}.dtype"
            if leaf.text != like:
                made.append(f"{leaf.text}.dtype is {kind}")
        for leaf in self.leaves:
            made += [] if leaf.sizes else [f"{leaf.text}.numel() > 0"]
            for j, c in enumerate(leaf.coordinates):
                if c.single:
                    made.append(f"{leaf.size(j)} == 1")
                elif c.axis is not None and self.size(c.axis) != leaf.size(j):
                    made.append(f"{leaf.size(j)} == {self.size(c.axis)}")
        return tuple(dict.fromkeys(made))

    @cached_property
    def like(self) -> str:
        """A tensor whose dtype all have that hold no numbers of elements."""
        return next(leaf.text for leaf in self.leaves if not leaf.integer and not leaf.sizes)

    @property
    def names(self) -> dict[str, str]:
        """What tensors are called in the kernel, each once."""
        own = {leaf.text: leaf.text for leaf in self.leaves if leaf.sizes}
        texts = dict.fromkeys(leaf.text for leaf in self.leaves if not leaf.sizes)
        return {text: f"t{i}" for i, text in enumerate(texts)} | own

    def setup(self) -> tuple[str, ...]:
        """Lines that come before the question whether the kernel fits."""
        made = [f"{leaf.text} = {leaf.view}" for leaf in self.leaves if leaf.view]
        return tuple(dict.fromkeys(made))

    def dense(self) -> list[str]:
        """Lines that give every tensor its name, its elements one after the other."""
        named = self.names.items()
        return [f"{name} = {text}.contiguous()" for text, name in named if text != name]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """``after(reduced(before(leaves)))`` at every place of a grid; or ``after`` alone."""

    grid: Grid
    kept: int
    """How many groups the output has; those behind them are reduced."""
    result: tuple[tuple[int, ...], ...]
    """Axes of every dimension of the output; none for one of one element."""
    nodes: tuple[Node, ...]
    """Of the output. The leaf ``<reduced>`` is what the reduction gave."""
    output: int
    reduction: str = ""
    """``sum``, ``mean``, ``max`` or ``min``; none: nothing is reduced."""
    before: tuple[Node, ...] = ()
    reduced: int = 0
    """The node of ``before`` that is reduced."""
    across: bool = False
    """Whether lanes run along what is reduced, not along the output."""

    @property
    def indexed(self) -> bool:
        """Whether numbers of elements are read."""
        return any(leaf.integer for leaf in self.grid.leaves)

    def shape(self) -> str:
        """The output's shape, in Python."""
        dims = [" * ".join(self.grid.size(a) for a in axes) or "1" for axes in self.result]
        return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"

    def numbers(self) -> dict[str, str]:
        """Numbers known at call time: their names in the kernel, and Python that gives them."""
        texts = [n.text for n in (*self.before, *self.nodes) if n.kind is Kind.NUMBER]
        return {f"s_{i}": text for i, text in enumerate(dict.fromkeys(texts))}


def leaf_nodes(nodes: Sequence[Node]) -> dict[int, int]:
    """Leaves that some nodes read: node to number of the leaf."""
    return {
        i: int(n.text)
        for i, n in enumerate(nodes)
        if n.kind is Kind.INPUT and n.text != "<reduced>"
    }


def grouped(leaves: Sequence[Leaf], axes: Sequence[int]) -> list[tuple[int, ...]]:
    """Put neighbouring axes together that run through all leaves as one."""
    made: list[tuple[int, ...]] = []
    for axis in axes:
        if made and all(_side_by_side(leaf, made[-1][-1], axis) for leaf in leaves):
            made[-1] = (*made[-1], axis)
        else:
            made.append((axis,))
    return made


def _side_by_side(leaf: Leaf, a: int, b: int) -> bool:
    first, second = leaf.place(a), leaf.place(b)
    if first is None or second is None:
        return first is second
    return first < second and all(c.single for c in leaf.coordinates[first + 1 : second])
