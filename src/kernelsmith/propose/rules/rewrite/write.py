"""From a graph back to Python: statements that call public functions."""

import keyword
from collections.abc import Callable, Sequence

from kernelsmith.propose.rules.rewrite.graph import NONE, VIEWS, Arena, Node, Value
from kernelsmith.propose.rules.rewrite.read import Traced

_F = "torch.nn.functional"
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_FUNCTIONAL = {"silu", "mish", "hardswish", "hardsigmoid", "softsign", "logsigmoid", "selu"}
_STEMS = {"conv_transpose": "up", "linear": "product", "matmul": "product", "reshape": "view",
          "permute": "turned", "slice": "part", "call": "value", "item": "value",
          "sum": "total", "amax": "largest", "amin": "smallest", "add": "shifted",
          "sub": "difference", "mul": "scaled", "div": "quotient", "cat": "joined",
          "stack": "taps", "pad": "padded", "expand": "spread", "full": "constant",
          "batch_norm": "normed", "group_norm": "normed", "layer_norm": "normed",
          "instance_norm": "normed", "avg_pool": "pooled", "max_pool": "pooled"}  # fmt: skip


def statements(arena: Arena, traced: Traced, roots: tuple[int, ...]) -> list[str]:
    """The lines of a function's body that compute and return the roots."""
    return _Writer(arena, traced).lines(roots)


class _Writer:
    def __init__(self, arena: Arena, traced: Traced) -> None:
        self._arena = arena
        self._arguments = [name for name, *_ in traced.arguments]
        tensors = [name for name, _, shape, _ in traced.arguments if shape is not None]
        self._somewhere = f"{tensors[0]}.device" if tensors else '"cpu"'
        self._kinds = {kind: f"{name}.dtype" for name, _, shape, kind in traced.arguments[::-1]
                       if shape is not None}  # fmt: skip
        self._returns = traced.returns
        self._names: dict[int, str] = {}
        self._taken = {*self._arguments, "self", "torch"}

    def lines(self, roots: tuple[int, ...]) -> list[str]:
        arena, lines = self._arena, []
        for number in arena.reachable(roots):
            node = arena[number]
            if node.op in ("input", "weight", "number", "item"):
                continue
            text = self._text(node)
            self._names[number] = name = self._name(node.op)
            lines.append(f"{name} = {text}")
        results = [self._use(each) for each in roots]
        shown = ", ".join(results)
        if self._returns == "Tensor":
            lines.append(f"return {shown}")
        elif self._returns == "list":
            lines.append(f"return [{shown}]")
        else:
            lines.append(f"return ({shown}{',' if len(results) == 1 else ''})")
        return lines

    def _name(self, op: str) -> str:
        stem = _STEMS.get(op, op)
        name, number = stem, 1
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def _use(self, number: int) -> str:
        if number == NONE:
            return "None"
        node = self._arena[number]
        match node.op:
            case "input":
                return str(node.attr("name"))
            case "weight":
                return str(node.attr("path"))
            case "number":
                return literal(node.attr("value"))
            case "item":
                return f"{self._use(node.inputs[0])}[{node.attr('index')}]"
        return self._names[number]

    def _text(self, node: Node) -> str:
        used = [self._use(each) for each in node.inputs]
        if node.op in _OPERATORS:
            left = f"({used[0]})" if used[0].startswith("-") else used[0]
            return f"{left} {_OPERATORS[node.op]} {used[1]}"
        if node.op in _FUNCTIONAL:
            return f"{_F}.{node.op}({used[0]})"
        if node.op == "call":
            return self._call(node, used)
        if node.op == "full":
            return (
                f"torch.full({node.shape!r}, {literal(node.attr('value'))}, "
                f"dtype={self._kinds.get(node.dtype, f'torch.{node.dtype}')}, "
                f"device={self._somewhere})"
            )
        if node.op in _TEXTS:
            return _TEXTS[node.op](node, used, [self._rank(each) for each in node.inputs])
        return f"torch.{node.op}({', '.join(used)})"

    def _rank(self, number: int) -> int:
        return len(self._arena.shape(number)) if number != NONE else 0

    def _call(self, node: Node, used: list[str]) -> str:
        args, pairs = (each[1:] for each in _tuples(node.attr("form")))
        shown = [self._formed(each, used) for each in args]
        named = [f"{key}={self._formed(value, used)}" for key, value in _tuples(pairs)]
        name = str(node.attr("name"))
        short = name.removeprefix("torch.Tensor.")
        if short == name:
            public = name.replace("torch.functional.", "torch.")
            return f"{public}({', '.join(shown + named)})"
        if short.endswith(".__get__"):
            return f"{shown[0]}.{short.removesuffix('.__get__')}"
        if short == "__getitem__":
            return f"{shown[0]}[{shown[1]}]"
        return f"{shown[0]}.{short}({', '.join(shown[1:] + named)})"

    def _formed(self, form: Value, used: list[str]) -> str:
        assert isinstance(form, tuple)
        kind, *rest = form
        match kind:
            case "node":
                assert isinstance(rest[0], int)
                return used[rest[0]]
            case "tuple":
                inner = ", ".join(self._formed(each, used) for each in rest)
                return f"({inner}{',' if len(rest) == 1 else ''})"
            case "list":
                return f"[{', '.join(self._formed(each, used) for each in rest)}]"
            case "slice":
                return f"slice({', '.join(self._formed(each, used) for each in rest)})"
            case "dtype":
                return f"torch.{rest[0]}"
            case "layout":
                return f"torch.{rest[0]}"
            case "device":
                return self._somewhere
            case "ellipsis":
                return "..."
            case "float":
                return f'float("{rest[0]}")'
        return literal(rest[0])


def _tuples(value: Value) -> list[tuple[Value, ...]]:
    assert isinstance(value, tuple)
    return [each for each in value if isinstance(each, tuple)]


def literal(value: Value) -> str:
    """A plain value as it is written in Python."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f'float("{value}")'
    return repr(value)


Text = Callable[[Node, Sequence[str], Sequence[int]], str]


def _reduction(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    dims = node.dims("dims")
    dim = repr(dims[0]) if len(dims) == 1 else repr(dims)
    keep = ", keepdim=True" if node.attr("keep") else ""
    if node.op == "var":
        keep = f", correction=0{keep}"
    return f"torch.{node.op}({used[0]}, dim={dim}{keep})"


def _attributed(prefix: str, **named: str) -> Text:
    """A function whose attributes are shown where they are given."""

    def text(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
        attrs = dict(node.attrs)
        shown = [f"{name}={literal(attrs[key])}" for key, name in named.items()
                 if attrs[key] is not None]  # fmt: skip
        return f"{prefix}({', '.join([used[0], *shown])})"

    return text


def _slice(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    dim, (start, stop, step) = node.integer("dim"), (node.integer(k) for k in
                                                     ("start", "stop", "step"))  # fmt: skip
    tail = f":{step}" if step != 1 else ""
    return f"{used[0]}[{':, ' * dim}{start}:{stop}{tail}]"


def _pad(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    pads = node.attr("pads")
    assert isinstance(pads, tuple)
    flat = tuple(each for pair in reversed(pads) if isinstance(pair, tuple) for each in pair)
    return f"{_F}.pad({used[0]}, {flat!r})"


def _product(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    bias = "" if used[2] == "None" else f", {used[2]}"
    return f"{_F}.linear({used[0]}, {used[1]}{bias})"


def _convolution(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    rank = len(node.shape) - 2
    usual = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank,
             "output_padding": (0,) * rank, "groups": 1}  # fmt: skip
    attrs = dict(node.attrs)
    order = ("stride", "padding", "output_padding", "dilation", "groups")
    shown = [f"{k}={attrs[k]!r}" for k in order if k in attrs and attrs[k] != usual[k]]
    given = [used[0], used[1], *([] if used[2] == "None" else [used[2]]), *shown]
    return f"{_F}.{node.op}{rank}d({', '.join(given)})"


def _pooling(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    kernel = node.dims("kernel")
    padding = "" if not any(node.dims("padding")) else f", padding={node.dims('padding')!r}"
    return (
        f"{_F}.{node.op}{len(kernel)}d({used[0]}, {kernel!r}, "
        f"stride={node.dims('stride')!r}{padding})"
    )


def _norm(node: Node, used: Sequence[str], ranks: Sequence[int]) -> str:
    eps = f"eps={literal(node.attr('eps'))}"
    match node.op:
        case "batch_norm":
            x, mean, var, w, b = used
            return f"{_F}.batch_norm({x}, {mean}, {var}, {w}, {b}, {eps})"
        case "group_norm":
            return f"{_F}.group_norm({used[0]}, {node.attr('groups')}, {used[1]}, {used[2]}, {eps})"
        case "layer_norm":
            shape = node.shape[len(node.shape) - node.integer("rank") :]
            return f"{_F}.layer_norm({used[0]}, {shape!r}, {used[1]}, {used[2]}, {eps})"
    return f"{_F}.instance_norm({used[0]}, weight={used[1]}, bias={used[2]}, {eps})"


_TEXTS: dict[str, Text] = {
    **dict.fromkeys(("sum", "mean", "amax", "amin", "logsumexp", "var"), _reduction),
    "clamp": _attributed("torch.clamp", low="min", high="max"),
    "gelu": _attributed(f"{_F}.gelu", approximate="approximate"),
    "leaky_relu": _attributed(f"{_F}.leaky_relu", negative_slope="negative_slope"),
    "elu": _attributed(f"{_F}.elu", alpha="alpha"),
    "softplus": _attributed(f"{_F}.softplus", beta="beta", threshold="threshold"),
    "softmax": _attributed("torch.softmax", dim="dim"),
    "log_softmax": _attributed("torch.log_softmax", dim="dim"),
    "tril": _attributed("torch.tril", diagonal="diagonal"),
    "triu": _attributed("torch.triu", diagonal="diagonal"),
    "reshape": lambda node, used, _: f"{used[0]}.reshape({node.shape!r})",
    "expand": lambda node, used, _: f"{used[0]}.expand({node.shape!r})",
    "permute": lambda node, used, _: f"{used[0]}.permute({node.attr('dims')!r})",
    "contiguous": lambda node, used, _: f"{used[0]}.contiguous()",
    "clone": lambda node, used, _: f"{used[0]}.clone()",
    "slice": _slice,
    "cat": lambda node, used, _: f"torch.cat(({', '.join(used)}), dim={node.attr('dim')})",
    "stack": lambda node, used, _: f"torch.stack(({', '.join(used)},), dim={node.attr('dim')})",
    "pad": _pad,
    "linear": _product,
    "conv": _convolution,
    "conv_transpose": _convolution,
    "avg_pool": _pooling,
    "max_pool": _pooling,
    **dict.fromkeys(("batch_norm", "group_norm", "layer_norm", "instance_norm"), _norm),
}


_MAY_SHARE = {
    "__getitem__", "__get__", "narrow", "select", "chunk", "split", "tensor_split", "hsplit",
    "vsplit", "dsplit", "unbind", "diagonal", "unfold", "movedim", "moveaxis", "swapaxes",
    "swapdims", "as_strided", "view_as_real", "view_as_complex", "real", "imag", "adjoint", "ravel",
    "conj", "positive", "broadcast_to", "broadcast_tensors", "meshgrid", "atleast_1d",
    "atleast_2d", "atleast_3d", "to", "type", "type_as", "float", "double", "half", "bfloat16",
    "view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "squeeze", "unsqueeze",
    "expand", "expand_as", "permute", "transpose", "t", "contiguous", "cpu", "cuda",
}  # fmt: skip
"""Functions whose result may lie in the memory of their first argument."""


def memory_of(arena: Arena, root: int) -> int:
    """The node in whose memory a result may lie: itself, or what it is a view of."""
    while True:
        node = arena[root]
        shares = node.op == "call" and str(node.attr("name")).rpartition(".")[2] in _MAY_SHARE
        if not node.inputs or not (node.op in VIEWS or node.op == "item" or shares):
            return root
        root = node.inputs[0]
