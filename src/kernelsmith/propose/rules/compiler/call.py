"""What a compiled module does in one call, as typed steps: the hub between reader and writers."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A tensor (or a number) that the call is given."""

    name: str
    path: str
    """Python that gives it inside ``forward``: ``x``, ``self.linear.weight``."""
    shape: tuple[int, ...] | None = None
    """As captured; ``None`` of a plain number."""
    stride: tuple[int, ...] | None = None
    dtype: str = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewed:
    """A tensor seen under another shape, without a copy."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A list of operands, as library calls take them."""

    items: "tuple[Operand, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A tensor by name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim:
    """A Python expression of no tensors that is written as it stands: ``torch.float32``."""

    text: str


Operand = Named | Viewed | Listed | Verbatim | int | float | bool | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """A new tensor, contents not set."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name for the same memory."""

    name: str
    of: Named | Viewed


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel of the candidate's own."""

    kernel: str
    operands: tuple[Operand, ...]
    """As the compiler passes them: tensors first, then sizes; block sizes are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A call of torch's own operators that the compiler kept."""

    target: str
    """Public Python: ``torch.mm``, ``torch.ops.aten.convolution.default``."""
    operands: tuple[Operand, ...]
    keywords: tuple[tuple[str, Operand], ...] = ()
    out: str | None = None
    """The tensor it writes into, where it has one."""
    result: str | None = None
    """The name of what it returns; several parts are taken from it by ``Part``."""
    shape: tuple[int, ...] | None = None
    """What the compiler relies on its one result to be; a library may lay it out otherwise."""
    stride: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several results of a library call."""

    name: str
    of: str
    index: int
    shape: tuple[int, ...] | None = None
    """As ``Library.shape``."""
    stride: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A tensor that is not needed any more; its memory may serve the next."""

    name: str


Step = Allocate | Alias | Launch | Library | Part | Drop
Schedule = Literal["pointwise", "reduction", "persistent", "scan", "template", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel's text and what its launch needs to know."""

    name: str
    text: str
    """Triton: from ``@triton.jit`` on. C++: the function."""
    schedule: Schedule
    sizes: tuple[tuple[str, int], ...] = ()
    """Extents by prefix, outermost last: ``(("x", 196608),)``; ``r0_`` for what is reduced."""
    blocks: tuple[str, ...] = ()
    """Its ``constexpr`` parameters in order: ``XBLOCK``, ``R0_BLOCK``."""
    fixed: tuple[tuple[str, str], ...] = ()
    """Launch parameters that the compiler has settled: ``num_warps``, a template's tiles."""
    grid: str = ""
    """The compiler's name for how programs are counted: ``Grid1D``."""
    operators: tuple[str, ...] = ()
    """The ATen operators that were fused into it."""
    defaults: tuple[tuple[str, int], ...] = ()
    """Block sizes, ``num_warps`` and ``num_stages`` to launch with unless others are chosen."""
    types: tuple[tuple[str, str], ...] = ()
    """Its parameters in order: ``*fp32``, ``i32``, ``constexpr``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A tensor that the compiler computed once: part of the program, not of the module."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    values: tuple[float | int | bool, ...]
    """All of it, in row-major order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A compiled module, for one set of shapes."""

    arguments: tuple[Argument, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    results: tuple[Operand, ...]
    tree: str = "{0}"
    """What ``forward`` returns, with results by number: ``({0}, {1})``."""
    prelude: str = ""
    """Helpers that the kernels call, written out, with two empty lines between them."""
    conditions: tuple[tuple[str, str], ...] = ()
    """Python inside ``forward`` and the value it must have for all this to hold: ``s`` and
    ``3.14``, ``self.training`` and ``False``."""
    made_with: tuple[tuple[str, str], ...] = ()
    """Arguments of the constructor that were folded in, by name; it holds for these only."""
    constants: tuple[Constant, ...] = ()
    assigned: tuple[tuple[str, str], ...] = ()
    """Attributes that ``forward`` sets besides what it returns: path, and value as in ``tree``."""
