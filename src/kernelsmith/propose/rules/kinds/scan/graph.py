"""What a scan task computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds.around import Around

SCAN = "<scan>"
"""The text of the node that stands for the scan's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """``after(scan(before(inputs)), inputs)``, elementwise but for the scan."""

    nodes: tuple[Node, ...]
    before: int
    output: int
    op: str
    """``sum`` or ``prod``."""
    around: Around
    reverse: bool

    @property
    def inputs(self) -> dict[int, str]:
        """Tensors by node."""
        return {
            i: n.text for i, n in enumerate(self.nodes)
            if n.kind is Kind.INPUT and n.text != SCAN
        }  # fmt: skip

    @property
    def scanned(self) -> int | None:
        """The node of the scan's result."""
        return next((i for i, n in enumerate(self.nodes) if n.text == SCAN), None)

    @property
    def numbers(self) -> dict[int, str]:
        """Numbers that are known at call time, by node."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind is Kind.NUMBER}
