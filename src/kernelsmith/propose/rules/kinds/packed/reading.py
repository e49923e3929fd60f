"""A convolution with reductions behind it, read from a task."""

from dataclasses import dataclass
from math import prod

from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.kinds import neighbours
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.neighbours.graph import Chain, Convolution
from kernelsmith.propose.rules.kinds.packed.layouts import (
    COLUMN,
    Layout,
    Layouts,
    Moments,
    extent,
    has_windows,
)
from kernelsmith.propose.rules.kinds.sizes import Three, three
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.values import Late
from kernelsmith.propose.rules.values import Value as Read

_ITSELF = Chain(nodes=(Node(kind=Kind.INPUT, text="<sum>", shape=Shape.FULL),), made=0, output=0)
_POOLS = {
    **{f"adaptive_avg_pool{n}d": "mean" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": "max" for n in (1, 2, 3)},
    **{f"AdaptiveAvgPool{n}d": "mean" for n in (1, 2, 3)},
    **{f"AdaptiveMaxPool{n}d": "max" for n in (1, 2, 3)},
}
_WINDOWS = {
    **{f"{kind}Pool{n}d": op for kind, op in (("Max", "max"), ("Avg", "sum")) for n in (1, 2, 3)},
    **{f"{kind}_pool{n}d": op for kind, op in (("max", "max"), ("avg", "sum")) for n in (1, 2, 3)},
}
_MOST = 64
"""Pixels of a window."""
_GROUPED = ("GroupNorm", *(f"InstanceNorm{n}d" for n in (1, 2, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """``convolution`` is bare; what stands behind it are nodes from ``made`` to ``output``."""

    convolution: Convolution
    nodes: tuple[Node, ...]
    layouts: tuple[Layout, ...]
    made: int
    output: int
    fits: tuple[str, ...]
    """When parameters and norms are of the form that the kernels are made for."""
    single: frozenset[int]
    """Parameters of one element."""
    channels: int | None
    """Output channels, where the source tells."""
    window: Three | None
    """Sizes of windows that are reduced, if any are."""

    def of(self, kind: Kind) -> dict[int, str]:
        """Texts of the nodes of a kind."""
        return {n: node.text for n, node in enumerate(self.nodes) if node.kind is kind}


class _Reading(Lowering):
    """Lowers with layouts; knows one convolution, norms, pools and views."""

    def __init__(self) -> None:
        super().__init__(_leaf)
        self.build: Layouts = Layouts()
        self.ops: Moments = Moments(self.build)
        self.convolutions: list[Expr] = []
        self.running: list[str] = []
        self.fits: list[str] = []
        self.window: Three | None = None
        self.bare: set[int] = set()
        """Parameters of norms: they lie along the channels as they are."""

    def number(self, text: str) -> int:
        """A number that is known at call time."""
        made = super().number(text)
        self.build.layout[made] = ()
        return made

    def check_row(self, dim: Read) -> None:
        """Keep the dimensions for the reductions that follow."""
        known = dim.known if isinstance(dim, Late) else dim
        dims = known if isinstance(known, tuple) else (known,)
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in dims):
            raise NotRecognised("rules must know the dimensions of a reduction")
        self.build.dims = tuple(each for each in dims if isinstance(each, int))

    def along(self, text: str) -> int:
        """A norm's vector."""
        made = self.parameter(text, COLUMN)
        self.bare.add(made)
        return made

    def parameter(self, text: str, layout: Layout) -> int:
        """A weight."""
        shape = Shape.FULL if layout else Shape.SCALAR
        return self.build.placed(Node(kind=Kind.PARAMETER, text=text, shape=shape), layout)

    def space(self, x: int) -> None:
        """The next reduction is over all of space."""
        layout = self.build.layout[x]
        found = tuple(d for d, each in enumerate(layout) if each.startswith("s"))
        if not found:
            raise NotRecognised("rules know pools and norms over the space of a convolution")
        self.build.dims = found


def read(traced: Traced) -> Reduced:
    """What there is of a convolution in a task, and all behind it.

    Raises:
        NotRecognised: There is none, or it is of another form.
    """
    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no convolution")
    reading = _Reading()
    output = reading.lower(traced.result)
    if not reading.convolutions:
        raise NotRecognised("rules find no convolution")
    if len(set(reading.convolutions)) != 1:
        raise NotRecognised("rules know one convolution at a time")
    layer = reading.convolutions[0]
    build, running = reading.build, tuple(dict.fromkeys(reading.running))
    found = neighbours.convolution_of(traced, layer, _ITSELF, running)
    reading.check_result(output, traced.module.task)
    nodes = tuple(build.nodes)
    made = next(n for n, node in enumerate(nodes) if node.kind is Kind.INPUT)
    single = frozenset(
        n for n, node in enumerate(nodes)
        if node.kind is Kind.PARAMETER and (not build.layout[n] or None in build.met.get(n, ()))
    )  # fmt: skip
    try:
        channels = plain_of(layer.setting("out_channels"))
    except NotRecognised:
        channels = None
    return Reduced(
        convolution=found, nodes=nodes, made=made, output=output, single=single,
        layouts=tuple(build.layout[n] for n in range(len(nodes))),
        fits=(*reading.fits, *_parameters_fit(reading, single, found)),
        channels=channels if isinstance(channels, int) else None, window=reading.window,
    )  # fmt: skip


def _parameters_fit(reading: _Reading, single: frozenset[int], found: Convolution) -> list[str]:
    build, made, x = reading.build, [], found.x
    for n, node in enumerate(build.nodes):
        if node.kind is not Kind.PARAMETER:
            continue
        text, one = node.text, f"{node.text}.numel() == 1"
        made.append(f"{text}.dtype is {x}.dtype")
        if n in build.rank:
            made.append(f"{text}.dim() <= {build.rank[n]}")
        many = [f"{text}.numel() == layer.out_channels"]
        for behind in sorted(each for each in build.met.get(n, ()) if each is not None):
            if n not in reading.bare:
                many.append(f"{text}.dim() > {behind}")
                many.append(f"{text}.shape[{-1 - behind}] == layer.out_channels")
        if n in single:
            made.append(one)
        elif n in build.spreads or n in reading.bare:
            made += many
        else:
            made.append(f"({one} or {' and '.join(many)})")
    return made


def _leaf(lowering: Lowering, expr: Expr) -> int | None:
    assert isinstance(lowering, _Reading)
    kind = str(expr.setting("kind")) if expr.op == "layer" else ""
    inner = expr.args[0] if expr.args else None
    if kind in neighbours.LAYERS and len(expr.args) == 1:
        lowering.convolutions.append(expr)
        space = tuple(f"s{i}" for i in range(neighbours.LAYERS[kind][0]))
        node = Node(kind=Kind.INPUT, text="<sum>", shape=Shape.FULL)
        return lowering.build.placed(node, ("b", "c", *space))
    if kind in neighbours.NORMS and isinstance(inner, Expr):
        return _running(lowering, expr, inner)
    if kind in _GROUPED and isinstance(inner, Expr):
        return _grouped(lowering, expr, kind, inner)
    if (kind in _POOLS or expr.op in _POOLS) and isinstance(inner, Expr):
        return _pooled(lowering, expr, kind or expr.op, inner)
    if (kind in _WINDOWS or expr.op in _WINDOWS) and isinstance(inner, Expr):
        return _windowed(lowering, expr, kind or expr.op, inner)
    if expr.op in ("squeeze", "flatten", "view") and isinstance(inner, Expr):
        return _viewed(lowering, expr, inner)
    if expr.op in ("layer_norm", "rms_norm"):
        raise NotRecognised(f"rules do not know {expr.op} behind a convolution")
    if expr.op == "parameter" and not expr.integer:
        one = expr.dims is not None and all(each == "1" for each in expr.dims)
        return lowering.parameter(expr.text, () if one else COLUMN)
    if expr.op == "input":
        raise NotRecognised("rules know no second input where a convolution is reduced")
    return None


def _full(lowering: _Reading, inner: Expr, what: str) -> int:
    """A value that has channels and space."""
    x = lowering.lower(inner)
    lowering.space(x)
    if lowering.build.layout[x][1:2] != ("c",):
        raise NotRecognised(f"rules know {what} of all channels")
    return x


def _running(lowering: _Reading, expr: Expr, inner: Expr) -> int:
    """Batch norm by running statistics."""
    if plain_of(expr.setting("track_running_stats", True)) is not True:
        raise NotRecognised("rules know batch norm with running statistics")
    value, path = _full(lowering, inner, "a batch norm"), expr.text
    lowering.running.append(path)
    build = lowering.build
    root = build.binary("add", lowering.along(f"{path}.running_var"),
                        lowering.number(f"{path}.eps"))  # fmt: skip
    value = build.binary("mul", build.binary("sub", value, lowering.along(f"{path}.running_mean")),
                         build.unary("rsqrt", root))  # fmt: skip
    return _affine(lowering, value, path, plain_of(expr.setting("affine", True)) is True)


def _affine(lowering: _Reading, value: int, path: str, affine: bool) -> int:
    if not affine:
        return value
    scale, shift = (lowering.along(f"{path}.{name}") for name in ("weight", "bias"))
    return lowering.ops.affine(value, scale, shift)


def _grouped(lowering: _Reading, expr: Expr, kind: str, inner: Expr) -> int:
    """Group norm and instance norm."""
    build, path = lowering.build, expr.text
    value = _full(lowering, inner, "a norm")
    group = kind == "GroupNorm"
    if not group and plain_of(expr.setting("track_running_stats", False)) is not False:
        raise NotRecognised("rules know instance norm without running statistics")
    mean, squares = build.moments(value, f"{path}.num_groups" if group else "channels")
    count = space = build.counted(extent(build.layout[value]))
    if group:
        lowering.fits.append(f"{path}.num_channels == layer.out_channels")
        size = lowering.number(f"(layer.out_channels // {path}.num_groups)")
        count = build.binary("mul", size, space)
    # Torch refuses norms of a single value.
    lowering.fits.append(f"<{extent(build.layout[value])}> > 1")
    root = build.binary("add", build.binary("div", squares, count), lowering.number(f"{path}.eps"))
    value = build.binary("mul", build.binary("sub", value, mean), build.unary("rsqrt", root))
    return _affine(lowering, value, path, plain_of(expr.setting("affine", group)) is True)


def _pooled(lowering: _Reading, expr: Expr, name: str, inner: Expr) -> int:
    """A pool of everything to one value."""
    given = dict(expr.settings)
    size = given.get("output_size", expr.args[1] if len(expr.args) > 1 else None)
    known = plain_of(size)
    ones = known if isinstance(known, tuple) else (known,)
    if any(each != 1 for each in ones) or given.get("return_indices"):
        raise NotRecognised("rules know pools of all of space behind a convolution")
    x = _full(lowering, inner, "a pool")
    if _POOLS[name] == "mean":
        return lowering.ops.mean(x, keep=True)
    return lowering.build.reduce("max", x)


def _windowed(lowering: _Reading, expr: Expr, name: str, inner: Expr) -> int:
    """A pool of windows side by side: a tile holds some of them."""
    x = _full(lowering, inner, "a pool")
    ndim = int(name[-2])
    given: dict[str, Value] = {"padding": 0, "dilation": 1, "ceil_mode": False}
    given |= {"return_indices": False, "divisor_override": None, "count_include_pad": True}
    given |= {key: value for key, value in expr.settings if key != "kind"}
    if expr.op != "layer":
        given |= zip(("kernel_size", "stride"), expr.args[1:], strict=False)
    size = three(given.get("kernel_size"), ndim, 1, of="pool")
    stride = size if given.get("stride") is None else three(given["stride"], ndim, 1, of="pool")
    plainly = (
        three(given["padding"], ndim, 0, of="pool") == (0, 0, 0)
        and three(given["dilation"], ndim, 1, of="pool") == (1, 1, 1)
        and plain_of(given["ceil_mode"]) is False
        and plain_of(given["return_indices"]) is False
        and plain_of(given["divisor_override"]) is None
        and (expr.op == "layer" or len(expr.args) <= 3)
    )
    many = prod(size)
    layout = lowering.build.layout[x]
    if not plainly or stride != size or lowering.window is not None or has_windows(layout):
        raise NotRecognised("rules know one pool of windows side by side behind a convolution")
    if many & (many - 1) or many > _MOST or len(layout) != ndim + 2:
        raise NotRecognised(f"rules know windows of 2, 4, 8 to {_MOST} pixels behind a convolution")
    lowering.window = size
    lowering.fits.append("<windows> > 0")
    made = lowering.build.windows(_WINDOWS[name], x)
    if _WINDOWS[name] == "sum":
        return lowering.build.binary("mul", made, lowering.build.constant(1.0 / many))
    return made


def _viewed(lowering: _Reading, expr: Expr, inner: Expr) -> int | None:
    """Dimensions of one element dropped; a parameter's in any form."""
    more: list[Value] = [*expr.args[1:], *(value for _, value in expr.settings)]
    sizes = [plain_of(each) for each in more]
    whole = [each for each in sizes if isinstance(each, int) and not isinstance(each, bool)]
    if len(whole) != len(sizes):
        raise NotRecognised(f"rules do not know this {expr.op} behind a convolution")
    if inner.op == "parameter" and not inner.integer and expr.op == "view":
        return lowering.parameter(f"{inner.text}.view({', '.join(map(str, whole))})", COLUMN)
    x = lowering.lower(inner)
    layout = lowering.build.layout[x]
    if expr.op == "squeeze" and len(whole) == 1 and -len(layout) <= whole[0] < len(layout):
        return lowering.build.without(x, [whole[0] % len(layout)])
    if expr.op == "flatten" and whole == [1] and len(layout) > 1:
        kept = [d for d in range(1, len(layout)) if layout[d] != "1"][:1] or [1]
        return lowering.build.without(x, [d for d in range(1, len(layout)) if d not in kept])
    raise NotRecognised(f"rules do not know this {expr.op} behind a convolution")
