"""What a task along columns computes, and the order of work on it."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Graph, Kind, Node, Shape
from kernelsmith.propose.rules.kinds.around import Around
from kernelsmith.propose.rules.plan import Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A graph of rows that lie along ``around.axis``."""

    graph: Graph
    around: Around

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return self.graph.nodes

    def of(self, *kinds: Kind) -> dict[int, str]:
        """Texts of the nodes of these kinds."""
        return {n: self.nodes[n].text for n in self.graph.of(*kinds)}

    def names(self) -> dict[int, str]:
        """What inputs and parameters are called."""
        return self.of(Kind.INPUT) | {n: f"p{n}" for n in self.of(Kind.PARAMETER)}

    def scalars(self) -> list[int]:
        """Parameters of one element."""
        return [n for n in self.of(Kind.PARAMETER) if self.nodes[n].shape is Shape.SCALAR]

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x = self.around.like
        lines = self.around.dense()
        lines += [f"p{n} = {text}.contiguous()" for n, text in self.of(Kind.PARAMETER).items()]
        match self.graph.result.shape:
            case Shape.FULL:
                return [*lines, f"out = torch.empty_like({x})"]
            case Shape.ROW:
                kept = f"(*{x}.shape[:axis], 1, *{x}.shape[axis + 1 :])"
            case _:
                kept = f"(*{x}.shape[:axis], *{x}.shape[axis + 1 :])"
        return [*lines, f"out = {x}.new_empty({kept})"]

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        x = self.around.like
        more = []
        for n, text in self.of(Kind.PARAMETER).items():
            size = "1" if self.nodes[n].shape is Shape.SCALAR else f"{x}.shape[axis]"
            more += [f"{text}.numel() == {size}", f"{text}.dtype is {x}.dtype"]
        return (*self.around.fits(dtypes), *more)

    def hoisted(self, wanted: list[int], have: set[int]) -> list[int]:
        """Values per column, not reductions, that these need and that are not there yet."""
        found: set[int] = set()
        stack = list(wanted)
        while stack:
            n = stack.pop()
            node = self.nodes[n]
            if n in have or n in found:
                continue
            if node.shape in (Shape.ROW, Shape.SQUEEZED) and node.kind is not Kind.VIEW:
                if node.kind is not Kind.REDUCE:
                    found.add(n)
                continue
            stack += node.args
        return sorted(found)

    def needed(self, sweep: Sweep) -> list[int]:
        """Values per element that a sweep is for."""
        made = [self.nodes[n].args[0] for n in sweep.reduces]
        made += [pair.over for pair in sweep.online]
        return made + ([self.graph.output] if sweep.writes else [])
