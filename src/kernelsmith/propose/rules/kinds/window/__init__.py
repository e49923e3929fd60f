"""Pooling and depthwise convolution: one value per window, with elementwise work behind it."""

from functools import partial

from kernelsmith.propose.rules.graph import (
    POLYNOMIAL,
    Kind,
    Node,
    NotRecognised,
    Shape,
)
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.sizes import Three, three
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.kinds.window.cpu import render_cpu
from kernelsmith.propose.rules.kinds.window.graph import Window
from kernelsmith.propose.rules.kinds.window.triton import render_triton
from kernelsmith.propose.rules.space import Space

_three = partial(three, of="window")
_LAYERS = {
    **{f"MaxPool{n}d": ("max", n) for n in (1, 2, 3)},
    **{f"AvgPool{n}d": ("mean", n) for n in (1, 2, 3)},
    **{f"Conv{n}d": ("conv", n) for n in (1, 2, 3)},
}
_FUNCTIONS = {f"{name}_pool{n}d": (op, n) for n in (1, 2, 3)
              for name, op in (("max", "max"), ("avg", "mean"))}  # fmt: skip
_NAMES = {
    "max": "x kernel_size stride padding dilation ceil_mode return_indices",
    "mean": "x kernel_size stride padding ceil_mode count_include_pad divisor_override",
}
_MANY_TAPS = 512


def recognise(traced: Traced, backend: str) -> Written:
    """One layer over windows and what is elementwise behind it.

    Raises:
        NotRecognised: There is none, or it is of another form.
    """
    window = _read(traced)
    what = {"max": "the largest", "mean": "the mean", "conv": "the weighted sum"}[window.op]
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(window, backend),
        render=lambda chosen: render(window, chosen),
        does=f"One kernel takes {what} of each window of {' by '.join(map(str, _shown(window)))} "
        "and does what follows in registers.",
    )  # fmt: skip


def _shown(window: Window) -> tuple[int, ...]:
    return window.size[3 - window.ndim :]


def _read(traced: Traced) -> Window:
    found: list[Expr] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op in _FUNCTIONS or (expr.op == "layer" and expr.setting("kind") in _LAYERS):
            found.append(expr)
            return lowering.build.add(Node(kind=Kind.INPUT, text="<window>", shape=Shape.FULL))
        if expr.op in ("input", "parameter"):
            raise NotRecognised("rules know nothing but numbers behind a window")
        return None

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no window")
    lowering = Lowering(leaf)
    output = lowering.lower(traced.result)
    if len(found) != 1:
        raise NotRecognised("rules know one layer over windows at a time")
    nodes, output = lowering.needed(output, traced.module.task)
    made = next(i for i, n in enumerate(nodes) if n.kind is Kind.INPUT)
    expr = found[0]
    if expr.op == "layer":
        op, ndim = _LAYERS[str(expr.setting("kind"))]
        given = dict(expr.settings) | {"x": expr.args[0]}
        if len(expr.args) != 1:
            raise NotRecognised("rules know layers over windows with one input")
    else:
        op, ndim = _FUNCTIONS[expr.op]
        given = dict(zip(_NAMES[op].split(), expr.args, strict=False)) | dict(expr.settings)
    return _window(op, ndim, given, expr.text, nodes=nodes, made=made, output=output)


def _window(
    op: str, ndim: int, given: dict[str, Value], path: str, *, nodes: tuple[Node, ...], made: int,
    output: int,
) -> Window:  # fmt: skip
    if plain_of(given.get("return_indices")):
        raise NotRecognised("rules do not know windows with return_indices")
    beyond = bool(plain_of(given.get("ceil_mode")))
    if plain_of(given.get("padding_mode", "zeros")) != "zeros":
        raise NotRecognised("rules know padding by zeros")
    size = _three(given.get("kernel_size"), ndim, 1)
    stride = size if given.get("stride") is None and op != "conv" else _three(
        given.get("stride", 1), ndim, 1)  # fmt: skip
    around = _three(given.get("padding", 0), ndim, 0)
    step = _three(given.get("dilation", 1), ndim, 1)
    x, before, behind = _unpadded(given.get("x"), ndim, conv=op == "conv")
    if op != "conv" and any(2 * a > k for a, k in zip(around, size, strict=True)):
        raise NotRecognised("rules know padding of at most half a window")
    bias = False
    if op == "conv":
        _check_depthwise(given)
        bias = plain_of(given.get("bias", True)) is not False
    if size[0] * size[1] * size[2] > _MANY_TAPS:
        raise NotRecognised(f"rules know windows of at most {_MANY_TAPS} taps")
    override = plain_of(given.get("divisor_override"))
    whole = plain_of(given.get("count_include_pad", True)) is not False
    if beyond and op == "mean" and whole and any(around) and not override:
        raise NotRecognised("rules do not know ceil_mode where a mean counts what was padded")
    return Window(
        op=op, ndim=ndim, x=x, size=size, stride=stride, step=step, path=path, bias=bias,
        before=_added(around, before), behind=_added(around, behind),
        whole=whole and not beyond, beyond=beyond,
        divisor=override if isinstance(override, int) else 0,
        nodes=nodes, made=made, output=output,
    )  # fmt: skip


def _check_depthwise(given: dict[str, Value]) -> None:
    """As many groups as channels, in and out; also where their number is not known yet."""
    same = []
    for name in ("in_channels", "out_channels", "groups"):
        value = given.get(name)
        same.append(value.text if isinstance(value, Expr) else value)
    if same[2] is None or same[0] != same[1] or same[1] != same[2]:
        raise NotRecognised("rules leave convolutions that mix channels to the library")


def _unpadded(value: Value, ndim: int, *, conv: bool) -> tuple[str, Three, Three]:
    """The input of a window, and how far ``F.pad`` has widened it."""
    if isinstance(value, Expr) and value.op == "pad" and conv:
        given = dict(zip(("x", "pad", "mode", "value"), value.args, strict=False))
        given |= dict(value.settings)
        pad, inner = plain_of(given.get("pad")), given.get("x")
        mode, fill = plain_of(given.get("mode", "constant")), plain_of(given.get("value"))
        if mode != "constant" or fill not in (None, 0) or not isinstance(pad, tuple):
            raise NotRecognised("rules know padding by zeros")
        sides = [each for each in pad if isinstance(each, int)]
        if len(sides) != len(pad) or len(pad) > 2 * ndim or min(sides) < 0:
            raise NotRecognised("rules must know how far an input is padded")
        sides += [0] * (6 - len(sides))
        if isinstance(inner, Expr) and inner.op == "input" and not inner.integer:
            return (inner.text, (sides[4], sides[2], sides[0]), (sides[5], sides[3], sides[1]))
    if isinstance(value, Expr) and value.op == "input" and not value.integer:
        return value.text, (0, 0, 0), (0, 0, 0)
    raise NotRecognised("rules know windows over an input")


def _added(a: Three, b: Three) -> Three:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _space(window: Window, backend: str) -> Space:
    if backend == "cpu":
        made = [p.width(), p.unroll("2", "vectors per step", "1", "2", "4"), *p.threads(),
                p.stores()]  # fmt: skip
        if {n.op for n in window.nodes} & POLYNOMIAL:
            made.append(p.math())
        return p.a_space("window", made, (
            {}, {"unroll": "4", "stores": "stream"}, {"width": "8", "unroll": "4"},
            {"unroll": "1"}, {"schedule": "dynamic"},
        ))  # fmt: skip
    made = [
        p.sized("block", "512", "outputs per program and row", "128", "256", "512", "1024", "2048"),
        p.warps("4"), p.evict(),
    ]  # fmt: skip
    rows = [each for each in ("1", "2", "4", "8") if window.taps * int(each) <= 128]
    if window.size[1] > 1 and len(rows) > 1:
        made.append(p.sized("rows", rows[min(2, len(rows) - 1)], "outputs below each other share "
                            "what they read", *rows))  # fmt: skip
    if window.size[2] > 3 and window.stride[2] >= window.size[2] and window.step[2] == 1:
        made.append(p.choice("taps", ("spread", "one"), "neighbouring lanes read neighbours"))
    return p.a_space("window", made, (
        {}, {"block": "1024", "warps": "8"}, {"rows": "8", "block": "256"}, {"taps": "one"},
        {"block": "256", "rows": "2"}, {"block": "1024", "rows": "1"},
    ))  # fmt: skip
