"""What an expression in ``forward`` stands for while it is being read."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.source import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor: a node of the graph, or one that only a library product may take."""

    node: int | None
    text: str = ""
    """Python that gives it, where it was not computed by the graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A number that is known at call time, such as ``self.eps``."""

    text: str
    known: Plain = None
    """Its value where the source tells; only to choose a form by, never to compute with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOf:
    """``x.shape``."""

    tensor: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A module made in the constructor: ``self.norm``."""

    path: str
    kind: str
    """In full, such as ``torch.nn.LayerNorm``."""
    settings: "dict[str, Value]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """``x.max(dim)``: values and indices, of which the graph knows the values."""

    values: Tensor


Value = Tensor | Late | ShapeOf | Layer | Extreme | Plain


def text_of(value: Value) -> str:
    """A number as Python.

    Raises:
        NotRecognised: It is none.
    """
    if isinstance(value, Late):
        return value.text
    if isinstance(value, int | float | str):
        return repr(value)
    raise NotRecognised("rules do not know this expression of shapes and numbers")
