"""What a scatter computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds.spread.graph import Grid, Spread


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """``held[where] += value`` at every place of a grid, then ``after`` of what is held."""

    grid: Grid
    """Its last leaf is where a term goes."""
    nodes: tuple[Node, ...]
    output: int
    after: Spread
    single: bool
    """Whether the result is float32 whatever the inputs are."""
    plain: bool
    """Whether what is held is the result."""

    @property
    def target(self) -> int:
        """The leaf that a term is added to."""
        return len(self.grid.leaves) - 1

    @property
    def inner(self) -> int:
        """The group that lanes run along."""
        return len(self.grid.groups) - 1

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        like = self.grid.like
        made = [*self.grid.fits(dtypes)]
        if any(not leaf.sizes for leaf in self.after.grid.leaves):
            made += self.after.grid.fits(dtypes)
            if self.after.grid.like != like:
                made.append(f"{self.after.grid.like}.dtype is {like}.dtype")
        if self.single:
            made.append(f"{like}.dtype is torch.float32")
        ranked = {text: i for i, text in enumerate(made) if ".dim() ==" in text}
        return tuple(dict.fromkeys([*ranked, *made]))

    @property
    def names(self) -> dict[str, str]:
        """What tensors are called in both kernels."""
        texts = dict.fromkeys(
            leaf.text for grid in (self.grid, self.after.grid) for leaf in grid.leaves
            if not leaf.sizes
        )  # fmt: skip
        return {text: f"t{i}" for i, text in enumerate(texts)} | {"held": "held"}

    def prepared(self, zeros: str) -> list[str]:
        """Lines of ``forward`` up to the launch; ``zeros`` makes the buffer."""
        like, sizes = self.grid.like, ", ".join(self.grid.leaves[-1].sizes)
        lines = [f"{name} = {text}.contiguous()" for text, name in self.names.items()
                 if text != name]  # fmt: skip
        buffer = f"torch.{zeros}(({sizes},), dtype=torch.float32, device={like}.device)"
        out = f"out = {like}.new_empty({self.after.shape()})"
        if self.plain:
            return [*lines, f"held = {buffer}",
                    f"out = held if {like}.dtype is torch.float32 else {like}.new_empty("
                    f"{self.after.shape()})"]  # fmt: skip
        return [*lines, f"held = {buffer}", out]

    def numbers(self) -> dict[str, str]:
        """Numbers known at call time, by their names in both kernels."""
        nodes = (*self.nodes, *self.after.nodes)
        texts = dict.fromkeys(n.text for n in nodes if n.kind is Kind.NUMBER)
        return {f"s_{i}": text for i, text in enumerate(texts)}
