"""What a router computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """``weigh(best k of score(row))`` and where the best stand."""

    x: str
    k: int
    order: tuple[str, ...]
    """``weights`` and ``indices`` as they are returned."""
    scored: tuple[Node, ...]
    score: int
    weighed: tuple[Node, ...]
    weights: int
    rising: bool
    """Whether scores rise with what they are made of: then that is compared, which has no ties
    where scores round to the same number."""

    def fits(self, dtypes: str, widest: int) -> tuple[str, ...]:
        """When the kernel may run."""
        x = self.x
        return (f"{x}.dtype in {dtypes}", f"{x}.dim() > 0", f"{x}.numel() > 0",
                f"{self.k} <= {x}.shape[-1] <= {widest}")  # fmt: skip

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x = self.x
        return [
            f"{x} = {x}.contiguous()",
            f"dim = {x}.shape[-1]",
            f"rows = {x}.numel() // dim",
            f"weights = {x}.new_empty((*{x}.shape[:-1], {self.k}))",
            "indices = torch.empty_like(weights, dtype=torch.int64)",
        ]

    def returned(self) -> str:
        """The last line of ``forward``."""
        return f"return {', '.join(self.order)}"
