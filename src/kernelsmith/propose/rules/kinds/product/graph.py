"""What a task around one product computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``after(a @ b)``, or ``after(a @ b.mT)`` where turned."""

    a: str
    b: str
    ranks: tuple[int, int]
    turned: bool
    nodes: tuple[Node, ...]
    output: int

    @property
    def made(self) -> int:
        """The node that stands for the product."""
        return next(i for i, n in enumerate(self.nodes) if n.text == "<product>")

    def of(self, *kinds: Kind) -> dict[int, str]:
        """Texts of the nodes of these kinds, but for the product."""
        return {
            i: n.text for i, n in enumerate(self.nodes)
            if n.kind in kinds and n.text != "<product>"
        }  # fmt: skip

    @property
    def more(self) -> dict[int, str]:
        """What is read behind the product, by node."""
        return {n: f"p{n}" for n in self.of(Kind.INPUT, Kind.PARAMETER)}

    def setup(self) -> tuple[str, ...]:
        """Lines before the conditions."""
        return (f"right = {self.b}",)

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        inner = -1 if self.turned else -2
        made = [f"{self.a}.dtype in {dtypes}", f"right.dtype is {self.a}.dtype",
                f"{self.a}.numel() > 0", "right.numel() > 0",
                f"{self.a}.dim() == {self.ranks[0]}", f"right.dim() == {self.ranks[1]}",
                f"{self.a}.shape[-1] == right.shape[{inner}]"]  # fmt: skip
        if self.ranks[1] == 3:
            made.append(f"{self.a}.shape[0] == right.shape[0]")
        outer = -2 if self.turned else -1
        for n, text in self.of(Kind.INPUT, Kind.PARAMETER).items():
            size = {
                Shape.FULL: f"{text}.shape == (*{self.a}.shape[:-1], right.shape[{outer}])",
                Shape.COLUMN: f"{text}.numel() == right.shape[{outer}]",
            }.get(self.nodes[n].shape, f"{text}.numel() == 1")
            made += [size, f"{text}.dtype is {self.a}.dtype"]
        return tuple(made)

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        lines = [f"{self.a} = {self.a}.contiguous()", "right = right.contiguous()"]
        lines += [
            f"p{n} = {text}.contiguous()" for n, text in self.of(Kind.INPUT, Kind.PARAMETER).items()
        ]
        if self.ranks[1] == 3:
            lines.append(f"batch, rows, depth = {self.a}.shape")
        else:
            lines += [f"batch, depth = 1, {self.a}.shape[-1]", f"rows = {self.a}.numel() // depth"]
        lines.append(f"columns = right.shape[{-2 if self.turned else -1}]")
        return [*lines, f"out = {self.a}.new_empty((*{self.a}.shape[:-1], columns))"]
