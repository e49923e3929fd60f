"""A convolution over neighbours, with what is elementwise before and behind it."""

import math
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds.sizes import Three


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Nodes from one value to another."""

    nodes: tuple[Node, ...]
    made: int
    """The node that stands for the value that it begins with."""
    output: int

    def of(self, *kinds: Kind) -> dict[int, str]:
        """Texts of the nodes of these kinds, but for the one that it begins with."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind in kinds and i != self.made}


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """``after(convolution of before(x))``; missing leading dimensions have size one."""

    ndim: int
    x: str
    path: str
    turned: bool
    """Transposed."""
    size: Three
    stride: Three
    padding: Three
    more: Three
    """Output padding of a transposed one."""
    step: Three
    """Dilation."""
    direct: bool
    """Few input channels per group: no product, but a sum of neighbours."""
    thin: bool
    """So few that half of a product's step, or more, would be padding."""
    few: bool
    """Few input channels altogether."""
    grouped: bool
    """Whether there may be more groups than one."""
    bias: bool
    before: Chain
    after: Chain
    plain: str
    """A call of the reference."""
    evaluated: tuple[str, ...]
    """Batch norms, which must go by their running statistics."""

    @property
    def taps(self) -> int:
        """Neighbours."""
        return math.prod(self.size)

    @property
    def channelwise(self) -> dict[int, str]:
        """One value per output channel, by node of ``after``."""
        return self.after.of(Kind.PARAMETER)

    @property
    def residual(self) -> dict[int, str]:
        """Inputs of the output's shape."""
        return self.after.of(Kind.INPUT)

    @property
    def tensors(self) -> list[str]:
        """What the kernel reads, by its names there."""
        made = ["x", "weight"] + ["bias"] * self.bias
        made += [f"p{n}" for n in self.channelwise]
        return [*made, *(f"r{n}" for n in self.residual)]

    @property
    def numbers(self) -> dict[str, str]:
        """Numbers that are known at call time, by their names in the kernel."""
        found = {f"s{n}": text for n, text in self.after.of(Kind.NUMBER).items()}
        return found | {f"t{n}": text for n, text in self.before.of(Kind.NUMBER).items()}

    def setup(self) -> tuple[str, ...]:
        """Lines before the conditions."""
        return (f"layer = {self.path}",)

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        x = self.x
        made = [
            f"{x}.dtype in {dtypes}", f"{x}.dim() == {self.ndim + 2}", f"{x}.numel() > 0",
            f"{x}.shape[1] == layer.in_channels", f"layer.weight.dtype is {x}.dtype",
            *(f"not {path}.training" for path in self.evaluated),
        ]  # fmt: skip
        for text in self.channelwise.values():
            made.append(
                f"({text}.numel() == 1 or {text}.numel() == layer.out_channels "
                f"and ({text}.dim() == 1 and {_normed(text, self.evaluated)} "
                f"or {text}.dim() > {self.ndim} "
                f"and {text}.shape[{-1 - self.ndim}] == layer.out_channels))"
            )
        for i in range(self.ndim):
            d = 3 - self.ndim + i
            reach = (self.size[d] - 1) * self.step[d] + 1
            if not self.turned:
                made.append(f"{x}.shape[{2 + i}] >= {max(1, reach - 2 * self.padding[d])}")
        return tuple(made)

    def outs(self, x: str) -> list[str]:
        """How many outputs there are along each of three axes, in Python; of the input ``x``."""
        missing, made = 3 - self.ndim, []
        for d in range(3):
            size = f"{x}.shape[{2 + d - missing}]"
            reach = (self.size[d] - 1) * self.step[d]
            if d < missing:
                made.append("1")
            elif self.turned:
                off = reach + 1 + self.more[d] - 2 * self.padding[d]
                made.append(f"({size} - 1) * {self.stride[d]} + {off}")
            else:
                off = 2 * self.padding[d] - reach - 1
                made.append(f"({size} + {off}) // {self.stride[d]} + 1")
        return made

    def measured(self) -> list[str]:
        """Lines of ``forward`` that name the input and all sizes."""
        missing = 3 - self.ndim
        ins = ["1"] * missing + [f"x.shape[{2 + i}]" for i in range(self.ndim)]
        return [
            f"x = {self.x}",
            f"sizes = ({', '.join(ins)})",
            f"outs = ({', '.join(self.outs('x'))})",
            "channels = layer.out_channels",
        ]

    def weights(self) -> list[str]:
        """Lines of ``forward`` that name the weights."""
        lines = ["weight = layer.weight.contiguous()"]
        return lines + (["bias = layer.bias"] if self.bias else [])

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        missing = 3 - self.ndim
        lines = [
            *self.measured(),
            f"out = x.new_empty((x.shape[0], channels, *outs[{missing}:]))",
        ]
        for n, text in self.channelwise.items():
            lines.append(f"p{n} = {text}.reshape(-1).expand(channels).contiguous()")
        for n, text in self.residual.items():
            lines += [f"if {text}.shape != out.shape or {text}.dtype is not x.dtype:",
                      f"    return {self.plain}", f"r{n} = {text}.contiguous()"]  # fmt: skip
        return lines + self.weights()


def _normed(text: str, evaluated: tuple[str, ...]) -> str:
    """Vectors of a batch norm lie along the channels, whatever their shape."""
    return str(any(text.startswith(f"{path}.") for path in evaluated))
