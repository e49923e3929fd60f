"""What a task over windows computes: pooling and depthwise convolution."""

import math
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds.sizes import Three


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """``after(reduce of each window)``; missing leading dimensions have size one."""

    op: str
    """``max``, ``mean`` or ``conv`` (a weighted sum, with a weight per channel and tap)."""
    ndim: int
    x: str
    size: Three
    stride: Three
    before: Three
    """Padding in front of each dimension."""
    behind: Three
    step: Three
    """Dilation."""
    beyond: bool
    """Whether the last windows may reach beyond the padded input (``ceil_mode``)."""
    whole: bool
    """Whether a mean counts what was padded."""
    divisor: int
    """0: the number of taps."""
    path: str
    """The layer with the weights of a convolution."""
    bias: bool
    nodes: tuple[Node, ...]
    made: int
    """The node that stands for the window's value."""
    output: int

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return math.prod(self.size)

    @property
    def padded(self) -> bool:
        """Whether a window may lie outside."""
        return any(self.before) or any(self.behind) or self.beyond

    @property
    def reach(self) -> Three:
        """How far a window goes beyond its first element."""
        a, b, c = ((k - 1) * d for k, d in zip(self.size, self.step, strict=True))
        return a, b, c

    @property
    def numbers(self) -> dict[int, str]:
        """Numbers that are known at call time, by node."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind is Kind.NUMBER}

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        x = self.x
        made = [f"{x}.dtype in {dtypes}", f"{x}.numel() > 0", f"{x}.dim() == {self.ndim + 2}"]
        if self.op == "conv":
            size = ", ".join(str(each) for each in self.size[3 - self.ndim :])
            made += [
                f"{self.path}.weight.shape == ({x}.shape[1], 1, {size})",
                f"{self.path}.weight.dtype is {x}.dtype",
            ]
        made += [
            f"{x}.shape[{2 + i}] >= {need}"
            for i in range(self.ndim)
            if (need := self.reach[3 - self.ndim + i] + 1 - self.before[3 - self.ndim + i]
                - self.behind[3 - self.ndim + i]) > 1
        ]  # fmt: skip
        return tuple(made)

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x, names = self.x, ("depth", "height", "width")
        lines = [f"{x} = {x}.contiguous()", f"batch, channels = {x}.shape[:2]"]
        missing = 3 - self.ndim
        for i, name in enumerate(names):
            lines.append(
                f"{name} = {x}.shape[{2 + i - missing}]" if i >= missing else f"{name} = 1"
            )
        outs = []
        for i, name in enumerate(names):
            more = self.before[i] + self.behind[i] - self.reach[i] - 1
            room, step = f"({name} {'+' if more >= 0 else '-'} {abs(more)})", self.stride[i]
            if self.beyond and i >= missing:
                lines += [
                    f"{name}s = -(-{room} // {step}) + 1",
                    # The last window begins inside, or in the padding before.
                    f"{name}s -= ({name}s - 1) * {step} >= {name} + {self.before[i]}",
                ]
                outs.append(f"{name}s")
            else:
                outs.append("1" if i < missing else f"{room} // {step} + 1")
        lines.append(f"sizes = ({', '.join(outs)})")
        lines.append(f"out = {x}.new_empty((batch, channels, *sizes[{missing}:]))")
        if self.op == "conv":
            lines.append(f"weight = {self.path}.weight.contiguous()")
            if self.bias:
                lines.append(f"bias = {self.path}.bias")
        return lines

    @property
    def tensors(self) -> list[str]:
        """What the kernel reads, by name."""
        held = ["weight"] * (self.op == "conv") + ["bias"] * self.bias
        return [self.x, *held]
