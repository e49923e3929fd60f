"""A tensor as ``outer`` by ``length`` by ``inner`` around one of its dimensions, in Python text."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.trace import Expr, Value, plain_of

DTYPES = "(torch.float32, torch.bfloat16, torch.float16)"
"""What the kernels compute, in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The inputs of a kernel, all of one shape, and the dimension that it goes along."""

    inputs: tuple[str, ...]
    masks: tuple[str, ...]
    """Those that hold truth values."""
    axis: int
    """Counted from the front where ``rank`` is known, from the back otherwise."""
    rank: int | None

    @property
    def last(self) -> bool:
        """Whether it is the last one."""
        return self.axis == -1 or (self.rank is not None and self.axis == self.rank - 1)

    @property
    def like(self) -> str:
        """The input whose dtype and shape the output has."""
        return next(text for text in self.inputs if text not in self.masks)

    def setup(self) -> tuple[str, ...]:
        """Where the axis is."""
        axis = str(self.axis) if self.axis >= 0 else f"{self.like}.dim() - {-self.axis}"
        return (f"axis = {axis}",)

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        x = self.like
        made = [f"{x}.dtype in {dtypes}", f"{x}.numel() > 0"]
        least = (
            f"{x}.dim() == {self.rank}" if self.rank is not None else f"{x}.dim() > {-self.axis}"
        )
        made.append(least)
        for text in self.inputs:
            if text != x:
                dtype = "torch.bool" if text in self.masks else f"{x}.dtype"
                made += [f"{text}.shape == {x}.shape", f"{text}.dtype is {dtype}"]
        return tuple(made)

    def dense(self) -> list[str]:
        """Lines that make the inputs dense and measure them."""
        x = self.like
        return [
            *[f"{text} = {text}.contiguous()" for text in self.inputs],
            f"outer, length = {x}.shape[:axis].numel(), {x}.shape[axis]",
            f"inner = {x}.shape[axis + 1 :].numel()",
        ]


def around(inputs: Iterable[Expr], dim: Value) -> Around:
    """Place a dimension.

    Raises:
        NotRecognised: It is not known, or the inputs differ in rank.
    """
    held = tuple(inputs)
    axis = plain_of(dim)
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise NotRecognised("rules must know the one dimension that this goes along")
    shapes = {each.dims for each in held}
    ranks = {each.rank for each in held}
    if len(ranks) > 1 or (len(shapes) > 1 and None not in shapes):
        raise NotRecognised("rules do not know inputs here that broadcast")
    if all(each.integer for each in held):
        raise NotRecognised("rules do not know integer inputs here")
    rank = ranks.pop() if ranks else None
    if rank is None and axis >= 0:
        raise NotRecognised(f"rules cannot tell whether dimension {axis} is the last")
    if rank is not None:
        axis += rank if axis < 0 else 0
        if not 0 <= axis < rank:
            raise NotRecognised(f"there is no dimension {axis} of {rank}")
    return Around(
        inputs=tuple(each.text for each in held), axis=axis, rank=rank,
        masks=tuple(each.text for each in held if each.integer),
    )  # fmt: skip
