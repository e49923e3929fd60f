"""What an argmax computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds.around import Around


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The index of the best of ``value(inputs)`` along ``around.axis``."""

    nodes: tuple[Node, ...]
    output: int
    largest: bool
    keep: bool
    around: Around

    def of(self, kind: Kind) -> dict[int, str]:
        """Texts of the nodes of a kind."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind is kind}

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x = self.around.like
        kept = "1, " if self.keep else ""
        shape = f"(*{x}.shape[:axis], {kept}*{x}.shape[axis + 1 :])"
        return [*self.around.dense(), f"out = {x}.new_empty({shape}, dtype=torch.int64)"]
