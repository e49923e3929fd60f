"""Convolutions over neighbours: per channel, in groups, across channels, forward and transposed."""

from functools import partial

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds import window
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.neighbours.cpu import render_cpu
from kernelsmith.propose.rules.kinds.neighbours.graph import Chain, Convolution
from kernelsmith.propose.rules.kinds.neighbours.triton import render_triton
from kernelsmith.propose.rules.kinds.sizes import three
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.space import Space

_three = partial(three, of="convolution")
LAYERS = {
    **{f"Conv{n}d": (n, False) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": (n, True) for n in (1, 2, 3)},
}
NORMS = tuple(f"BatchNorm{n}d" for n in (1, 2, 3))
_DIRECT = 8
"""Input channels of a group up to which neighbours are added up one by one."""
_STEP = 16
"""Of a product in tiles, at least."""
_MANY_TAPS = 512


def recognise(traced: Traced, backend: str) -> Written:
    """One convolution of an input, with what is elementwise on both sides.

    Raises:
        NotRecognised: There is none, or it is of another form, or windows know it.
    """
    found = read(traced)
    try:
        window.recognise(traced, backend)
    except NotRecognised:
        pass
    else:
        raise NotRecognised("rules leave what is a window to that kind")
    if backend == "cpu" and not found.direct:
        raise NotRecognised("rules leave convolutions that mix channels to the library here")
    how = "adds up neighbours" if found.direct else "multiplies weights and neighbours in tiles"
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(found, backend),
        render=lambda chosen: render(found, chosen),
        does=f"One kernel {how} of a {'transposed ' if found.turned else ''}convolution and does "
        "what stands before and behind it in registers.",
    )  # fmt: skip


_FEW = 16
"""Input channels below which a step over the channels of one neighbour would be mostly padding."""


def read(traced: Traced) -> Convolution:
    """What there is of a convolution in a task.

    Raises:
        NotRecognised: There is none, or it is of another form.
    """
    found: list[Expr] = []
    norms: list[str] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        kind = expr.setting("kind") if expr.op == "layer" else ""
        if kind in LAYERS and len(expr.args) == 1:
            found.append(expr)
            return lowering.build.add(Node(kind=Kind.INPUT, text="<sum>", shape=Shape.FULL))
        if kind in NORMS and isinstance(expr.args[0], Expr):
            return running_norm(lowering, expr, norms)
        if expr.op == "parameter" and not expr.integer:
            return lowering.build.add(Node(kind=Kind.PARAMETER, text=expr.text, shape=Shape.COLUMN))
        if expr.op == "input" and not expr.integer:
            return lowering.build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
        return None

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no convolution")
    lowering = Lowering(leaf)
    lowering.lower(traced.result)
    if not found:
        raise NotRecognised("rules find no convolution")
    after = _chain(lowering, traced.result, "<sum>", traced.module.task)
    if len(found) != 1:
        raise NotRecognised("rules know one convolution at a time")
    return convolution_of(traced, found[0], after, tuple(norms))


def _chain(lowering: Lowering, expr: Expr, begins: str, task: Task) -> Chain:
    output = lowering.lower(expr)
    nodes, output = lowering.needed(output, task)
    made = [i for i, n in enumerate(nodes) if n.kind is Kind.INPUT and n.text == begins]
    if len(made) != 1 or nodes[output].shape is not Shape.FULL:
        raise NotRecognised("rules know one convolution at a time")
    return Chain(nodes=nodes, made=made[0], output=output)


def running_norm(lowering: Lowering, expr: Expr, norms: list[str]) -> int:
    """Batch norm by running statistics, as it is written down."""
    if plain_of(expr.setting("track_running_stats", True)) is not True:
        raise NotRecognised("rules know batch norm with running statistics")
    assert isinstance(expr.args[0], Expr)
    build, path = lowering.build, expr.text
    norms.append(path)

    def along(name: str) -> int:
        text = f"{path}.{name}"
        return build.add(Node(kind=Kind.PARAMETER, text=text, shape=Shape.COLUMN))

    value = lowering.lower(expr.args[0])
    root = build.binary("add", along("running_var"), lowering.number(f"{path}.eps"))
    value = build.binary("mul", build.binary("sub", value, along("running_mean")),
                         build.unary("rsqrt", root))  # fmt: skip
    if plain_of(expr.setting("affine", True)) is True:
        value = build.binary("add", build.binary("mul", value, along("weight")), along("bias"))
    return value


def _few(given: dict[str, Value]) -> bool:
    try:
        inputs, groups = plain_of(given.get("in_channels")), plain_of(given.get("groups", 1))
    except NotRecognised:
        return False
    assert isinstance(inputs, int)
    assert isinstance(groups, int)
    return inputs // groups < _FEW


def _grouped(given: dict[str, Value]) -> bool:
    try:
        return plain_of(given.get("groups", 1)) != 1
    except NotRecognised:
        return True


def convolution_of(
    traced: Traced, layer: Expr, after: Chain, norms: tuple[str, ...]
) -> Convolution:
    """A convolution's layer with what stands before it.

    Raises:
        NotRecognised: It is of another form.
    """
    arguments = [each.arg for each in traced.module.forward.args.args]
    ndim, turned = LAYERS[str(layer.setting("kind"))]
    given = dict(layer.settings)
    if plain_of(given.get("padding_mode", "zeros")) != "zeros":
        raise NotRecognised("rules know padding by zeros")
    before, x = _before(layer.args[0], traced.module.task)
    size = _three(given.get("kernel_size"), ndim, 1)
    if size[0] * size[1] * size[2] > _MANY_TAPS:
        raise NotRecognised(f"rules know at most {_MANY_TAPS} neighbours")
    return Convolution(
        ndim=ndim, x=x, path=layer.text, turned=turned, size=size,
        stride=_three(given.get("stride", 1), ndim, 1),
        padding=_three(given.get("padding", 0), ndim, 0),
        more=_three(given.get("output_padding", 0), ndim, 0) if turned else (0, 0, 0),
        step=_three(given.get("dilation", 1), ndim, 1), direct=_direct(given),
        thin=_direct(given) and not _fills_half(given), few=_few(given),
        grouped=_grouped(given),
        bias=plain_of(given.get("bias", True)) is not False, before=before, after=after,
        evaluated=norms, plain=f"self.plain({', '.join(arguments[1:])})",
    )  # fmt: skip


def _before(value: Value, task: Task) -> tuple[Chain, str]:
    """What is elementwise on the way from an input to the convolution."""
    seen: list[str] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op == "input" and not expr.integer:
            seen.append(expr.text)
            return lowering.build.add(Node(kind=Kind.INPUT, text="<x>", shape=Shape.FULL))
        if expr.op in ("parameter", "layer") and not expr.args:
            raise NotRecognised("rules know nothing but numbers before a convolution")
        return None

    if not isinstance(value, Expr):
        raise NotRecognised("rules know convolutions of an input")
    chain = _chain(Lowering(leaf), value, "<x>", task)
    if len(set(seen)) != 1:
        raise NotRecognised("rules know convolutions of one input")
    return chain, seen[0]


def _direct(given: dict[str, Value]) -> bool:
    """Whether a group has few input channels; also where their number is not known yet."""
    groups, inputs = (given.get(name, 1) for name in ("groups", "in_channels"))
    texts = [each.text if isinstance(each, Expr) else each for each in (groups, inputs)]
    if texts[0] == texts[1]:
        return True
    try:
        many, count = plain_of(groups), plain_of(inputs)
    except NotRecognised:
        if isinstance(groups, Expr):
            raise NotRecognised("rules must know the groups of a convolution") from None
        return False
    assert isinstance(many, int)
    assert isinstance(count, int)
    return many > 1 and count // many <= _DIRECT


def _fills_half(given: dict[str, Value]) -> bool:
    """Whether a group has enough input channels for half of a product's shortest step."""
    try:
        many, count = plain_of(given.get("groups", 1)), plain_of(given.get("in_channels"))
    except NotRecognised:
        return False
    assert isinstance(many, int)
    assert isinstance(count, int)
    return count // many >= _STEP // 2


def _space(found: Convolution, backend: str) -> Space:
    if backend == "cpu":
        made = [p.width(), *p.threads(), p.stores(), p.math()]
        return p.a_space("neighbours", made, ({}, {"schedule": "dynamic"}, {"width": "8"}))
    if found.direct:
        made = [
            p.sized("pixels", "512", "outputs per program and channel", "128", "256", "512",
                    "1024"),
            p.sized("channels", "1", "channels per program", "1", "2", "4", "8"), p.warps("4"),
            p.choice("layout", ("given", "last"), "channels side by side before all else"),
        ]  # fmt: skip
        return p.a_space("neighbours", made, (
            {}, {"pixels": "1024", "warps": "8"}, {"pixels": "256", "channels": "4"},
            {"layout": "last", "channels": "8", "pixels": "128"},
        ))  # fmt: skip
    made = [
        p.precision("tf32x3", "ieee"),
        p.choice("order", ("flat", "taps") if found.few else ("taps", "flat"),
                 "channels of one neighbour after the other, or all neighbours of a channel: no "
                 "waste where channels are few"),
        p.choice("layout", ("given", "last"), "channels side by side before all else"),
        p.sized("channels", "128", "output channels per program", "16", "32", "64", "128"),
        p.sized("pixels", "128", "outputs per program and channel", "32", "64", "128", "256"),
        p.sized("depth", "32", "input channels per step", "16", "32", "64"),
        p.warps("8"), p.sized("stages", "3", "tiles in flight", "1", "2", "3", "4"),
    ]  # fmt: skip
    return p.a_space("neighbours", made, (
        {}, {"channels": "64", "pixels": "256"}, {"layout": "last"},
        {"channels": "64", "warps": "4"}, {"order": "taps" if found.few else "flat"},
        {"channels": "32", "pixels": "256", "warps": "4"}, {"precision": "tf32x3"},
    ))  # fmt: skip
