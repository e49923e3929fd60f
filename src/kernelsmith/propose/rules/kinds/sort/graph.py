"""What a sort and a selection compute."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Graph, Kind, Node, Shape
from kernelsmith.propose.rules.kinds.around import Around

SORTED = "<sorted>"
"""The text of the node that stands for the sorted values."""
INDICES = -1
"""In the place of an output's node: where the values stood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Nodes over the rows of some inputs of one shape; the last dimension is the row."""

    around: Around
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    """Nodes in the order in which they are returned, or ``INDICES``."""
    wrap: str
    """What the outputs are returned as: ``{}``, or a class of torch around them."""

    def of(self, kind: Kind) -> dict[int, str]:
        """Texts of the nodes of a kind."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind is kind}

    def given(self) -> dict[str, str]:
        """What the kernels call the inputs: names that are none of their own."""
        return {text: f"x{i}" for i, text in enumerate(self.around.inputs)}

    def inputs(self) -> dict[int, str]:
        """The kernels' names of the tensors that are read, by their nodes."""
        given = self.given()
        return {i: given[text] for i, text in self.of(Kind.INPUT).items() if text != SORTED}

    def names(self) -> list[str]:
        """The outputs' names."""
        return ["indices" if n == INDICES else f"out{i}" for i, n in enumerate(self.outputs)]

    def arguments(self) -> list[tuple[str, str]]:
        """The kernel's tensors, with their types in C++."""
        made = [("const T*", name) for name in self.given().values()]
        seen: set[str] = set()
        for name in self.names():
            if name not in seen:
                made.append(("int64_t*" if name == "indices" else "T*", name))
            seen.add(name)
        return made

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x = self.around.like
        lines = [f"{text} = {text}.contiguous()" for text in self.around.inputs]
        return [*lines, f"length = {x}.shape[-1]", f"rows = {x}.numel() // length"]

    def returned(self) -> str:
        """The last line of ``forward``."""
        return f"return {self.wrap.format(', '.join(self.names()))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted(Over):
    """``behind(sort(score))``, where the values stood, or the first ``count`` of both."""

    score: int
    descending: bool
    count: str
    """How many are kept, in Python; empty: all."""

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        kept = (f"0 < {self.count} <= {self.around.like}.shape[-1]",) if self.count else ()
        return (*self.around.fits(dtypes), *kept)

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x = self.around.like
        lines = [f"count = {self.count}"] if self.count else []
        lines += Over.prepared(self)
        for name in dict.fromkeys(self.names()):
            dtype = ", dtype=torch.int64" if name == "indices" else ""
            made = f"torch.empty_like({x}{dtype})"
            if self.count:
                made = f"{x}.new_empty((*{x}.shape[:-1], count){dtype})"
            lines.append(f"{name} = {made}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Over):
    """Rows with values of some rank among them: a reduction ``kth``, its rank in its ``text``.

    Ranks count from the smallest, which is 1; no number is the largest. ``median`` is the same,
    but of a row with a value that is no number it is none.
    """

    conditions: tuple[str, ...]
    """What must hold of the ranks, in Python."""

    @property
    def graph(self) -> Graph:
        """What the sweeps are planned by."""
        full = [n for n in self.outputs if self.nodes[n].shape is Shape.FULL]
        return Graph(nodes=self.nodes, output=(full or self.outputs)[0])

    def ranks(self) -> dict[int, str]:
        """Of every selection, its rank in Python."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.op in ("kth", "median")}

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        return (*self.around.fits(dtypes), *self.conditions)

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x, lines = self.around.like, Over.prepared(self)
        made = {Shape.FULL: f"torch.empty_like({x})",
                Shape.ROW: f"{x}.new_empty((*{x}.shape[:-1], 1))",
                Shape.SQUEEZED: f"{x}.new_empty({x}.shape[:-1])"}  # fmt: skip
        for name, n in zip(self.names(), self.outputs, strict=True):
            lines.append(f"{name} = {made[self.nodes[n].shape]}")
        return lines


def reached(nodes: Sequence[Node], starts: Sequence[int]) -> set[int]:
    """Nodes that some are computed from, themselves included."""
    found: set[int] = set()
    stack = list(starts)
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            stack += nodes[number].args
    return found
