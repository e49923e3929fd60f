"""What ``forward`` returns as one expression: calls by their names, nothing of it run."""

import ast
import re
from dataclasses import dataclass

from kernelsmith.propose.rules.attributes import attributes, check_told
from kernelsmith.propose.rules.functions import LAYERS, RENAMED, check_norm
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.idle import (
    check_number,
    is_idle,
    is_sequence,
    layers_of,
    number_in,
    undropped,
)
from kernelsmith.propose.rules.kinds.inputs import Inputs
from kernelsmith.propose.rules.source import Module, Plain, Unknown

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.FloorDiv: "floordiv",
}  # fmt: skip
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "floordiv": "//"}
_PAIRS = ("max", "min", "topk", "sort", "kthvalue", "median")
"""Functions that give values and indices."""
_EXTREMES = ("max", "min")
"""Over a dimension, or of two tensors."""
_CONVOLUTION = "in_channels out_channels kernel_size stride padding dilation groups bias"
_POOL = "kernel_size stride padding"
_LAYERS = {
    "Linear": "in_features out_features bias",
    **{f"Conv{n}d": f"{_CONVOLUTION} padding_mode" for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": "in_channels out_channels kernel_size stride padding output_padding "
       "groups bias dilation padding_mode" for n in (1, 2, 3)},
    **{f"MaxPool{n}d": f"{_POOL} dilation return_indices ceil_mode" for n in (1, 2, 3)},
    **{f"AvgPool{n}d": f"{_POOL} ceil_mode count_include_pad divisor_override" for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": "num_features eps momentum affine track_running_stats" for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": "num_features eps momentum affine track_running_stats"
       for n in (1, 2, 3)},
    "GroupNorm": "num_groups num_channels eps affine",
    "Embedding": "num_embeddings embedding_dim padding_idx max_norm",
    **{f"AdaptiveAvgPool{n}d": "output_size" for n in (1, 2, 3)},
    **{f"AdaptiveMaxPool{n}d": "output_size return_indices" for n in (1, 2, 3)},
    "EmbeddingBag": "num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode",
    "NLLLoss": "weight size_average ignore_index reduce reduction",
    "CrossEntropyLoss": "weight size_average ignore_index reduce reduction label_smoothing",
}  # fmt: skip
"""Layers that some kind knows, with the names of their settings in order."""
_TAKEN = {
    "out", "axis", "outer", "length", "inner", "partial", "row", "rows", "at", "first", "last",
    "carry", "scan", "totals", "number", "piece", "pieces", "block", "grid", "strips", "column",
    "value", "lib", "RUN", "torch", "triton", "tl", "load", "store", "splat", "kernel", "u", "W",
    "U", "T", "vec", "step", "start", "from", "down", "each", "local", "scanned", "total", "there",
    "inside", "count", "weight", "bias", "batch", "channels", "size", "best", "index", "device",
    "i", "o", "dim", "tokens", "table", "weights", "indices", "held", "rest",
    "depth", "height", "width", "depths", "heights", "widths", "tall", "wide", "left",
    "right", "top", "most", "plane", "to", "in", "line", "lines", "z", "y", "v", "tap", "taps",
    "cx", "cy", "cz", "at_x", "at_y", "at_z", "channel", "base", "high", "sizes", "windows",
    "kept", "share", "part", "parts", "begin", "end", "looped", "parted", "joined", "whole",
    "full", "spot", "here", "steps", "larger", "smaller", "times", "tanh", "log1p",
}  # fmt: skip
"""Names that the kernels of these kinds use themselves."""
_FRESH = {"zeros", "new_zeros", "zeros_like"}
"""Makers of tensors that nobody else holds: what changes them in place gives them another value."""
_ASKED = {"torch.nn.EmbeddingBag"}
"""Layers whose other arguments kinds know."""
_IN_PLACE = {"index_add_", "scatter_add_"}


@dataclass(frozen=True, slots=True)
class Expr:
    """A call, or a leaf: ``input``, ``parameter``, ``number`` (known at call time), ``layer``."""

    op: str
    args: "tuple[Value, ...]" = ()
    settings: "tuple[tuple[str, Value], ...]" = ()
    text: str = ""
    """Python that gives a leaf; of a layer, its path."""
    known: Plain = None
    """A number's value where the source tells; only to choose a form by."""
    dims: tuple[str, ...] | None = None
    """An input's or a parameter's dimensions as written."""
    integer: bool = False

    def setting(self, name: str, default: "Value" = None) -> "Value":
        """A keyword argument."""
        return dict(self.settings).get(name, default)

    @property
    def rank(self) -> int | None:
        """How many dimensions, where the source tells."""
        return None if self.dims is None else len(self.dims)


Value = Expr | float | int | bool | str | None | tuple["Value", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A task's ``forward``, read."""

    module: Module
    inputs: tuple[Expr, ...]
    result: Value


def trace(module: Module) -> Traced:
    """Read ``forward``.

    Raises:
        NotRecognised: It holds a statement or an expression of another form.
    """
    tracer = _Tracer(module)
    inputs = tracer.arguments()
    return Traced(module=module, inputs=inputs, result=tracer.run())


def safe_name(name: str) -> str:
    """An argument's name in the candidate: none that the kernels use themselves."""
    return f"{name}_" if name in _TAKEN or re.fullmatch(r"([vsramet]|out)\d+", name) else name


def plain_of(value: Value) -> Plain:
    """A value that decides the form of a kernel, so that it must be known now.

    Raises:
        NotRecognised: It is not.
    """
    if isinstance(value, Expr):
        if value.op == "number" and value.known is not None:
            return value.known
        raise NotRecognised(f"rules must know `{value.text or value.op}` before anything runs")
    if isinstance(value, tuple):
        return tuple(plain_of(each) for each in value)
    return value


class _Tracer:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._attributes = attributes(module.constructor)
        self._names: dict[str, Value] = {}

    def arguments(self) -> tuple[Expr, ...]:
        arguments = self._module.forward.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise NotRecognised("rules do not know a forward with starred arguments")
        names = [a.arg for a in arguments.args[0 if self._module.task.is_function else 1 :]]
        found = Inputs(self._module).all()
        if len(found) > len(names) or len(names) - len(found) > len(arguments.defaults):
            raise NotRecognised("rules cannot tell which inputs get_inputs() makes")
        inputs = []
        for name, (dims, integer) in zip(names, found, strict=False):
            inputs.append(Expr("input", text=safe_name(name), dims=dims, integer=integer))
            self._names[name] = inputs[-1]
        for name, default in zip(names[::-1], arguments.defaults[::-1], strict=False):
            if name not in self._names:
                self._names[name] = self._module.plain(default)
        return tuple(inputs)

    def run(self) -> Value:
        for statement in self._module.forward.body:
            match statement:
                case ast.Return(value=value) if value is not None:
                    return self._whole(value)
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._names[name] = self._whole(value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    held = self._value(value)
                    for i, target in enumerate(targets):
                        if not isinstance(target, ast.Name):
                            raise _unknown(statement)
                        self._names[target.id] = _item(held, i)
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr=changing)) as value) if (
                    changing in _IN_PLACE
                ):
                    self._whole(value)
                case _:
                    raise _unknown(statement)
        raise NotRecognised("rules find no value that forward returns")

    def _whole(self, node: ast.expr) -> Value:
        """The value of a statement; only there may something change in place."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=changing)):
                if changing in _IN_PLACE and name in self._names:
                    return self._changed(node, name)
        return self._value(node)

    def _changed(self, node: ast.Call, name: str) -> Value:
        """A fresh tensor after a statement that changed it in place; nobody else may hold it."""
        before = self._names[name]
        holders = [key for key, held in self._names.items() if _holds(held, before)]
        assert isinstance(node.func, ast.Attribute)
        functional = node.func.attr[:-1]
        if not isinstance(before, Expr) or before.op not in _FRESH or holders != [name]:
            raise NotRecognised(f"rules do not know what changes `{name}` in place")
        self._names[name] = Expr(functional, (before, *self._arguments(node)), self._keywords(node))
        return self._names[name]

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(self._value(each) for each in elements)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return self._operator(_OPERATORS[type(op)], node, left, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                return Expr(_OPERATORS[type(op)], (self._value(left), self._value(right)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                held = self._value(operand)
                if isinstance(held, Expr):
                    if held.op == "number":
                        return Expr("number", text=f"-{held.text}")
                    return Expr("neg", (held,))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value, slice=ast.Constant(value=int() as index)):
                return _item(self._value(value), index)
            case ast.Subscript(
                value=value,
                slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as index)),
            ):
                return _item(self._value(value), -index)
            case ast.Subscript(value=value, slice=inside):
                held = self._value(value)
                if isinstance(held, Expr):
                    items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                    if (pieces := _pieces(items)) is not None:
                        return Expr("sliced", (held, *pieces))
                    return Expr("index", (held, *[self._index(each) for each in items]))
            case ast.Call():
                return self._call(node)
        try:
            return self._module.plain(node)
        except Unknown:
            raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`") from None

    def _index(self, node: ast.expr) -> Value:
        """What stands in brackets: a tensor, ``None``, ``":"`` or ``"..."``."""
        match node:
            case ast.Slice(lower=None, upper=None, step=None):
                return ":"
            case ast.Constant(value=None):
                return None
            case ast.Constant(value=value) if value is ...:
                return "..."
        held = self._value(node)
        if not isinstance(held, Expr) or held.op == "number":
            raise NotRecognised(f"rules do not know the index `{ast.unparse(node)[:60]}`")
        return held

    def _operator(self, name: str, node: ast.expr, left: ast.expr, right: ast.expr) -> Value:
        a, b = self._value(left), self._value(right)
        scalar = [not isinstance(each, Expr) or each.op == "number" for each in (a, b)]
        if all(scalar) and name in _SIGNS:
            try:
                return self._module.plain(node)
            except NotRecognised:
                return Expr("number", text=f"({_text(a)} {_SIGNS[name]} {_text(b)})",
                            known=_known(name, a, b))  # fmt: skip
        return Expr(name, (a, b))

    def _attribute(self, node: ast.Attribute) -> Value:
        if self._module.dotted(node) is not None:
            return self._module.plain(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._member(node.attr)
        held = self._value(node.value)
        if isinstance(held, Expr):
            if held.op == "layer" and not held.args and node.attr in ("weight", "bias"):
                dims = _table(held) if node.attr == "weight" else None
                return Expr("parameter", text=f"{held.text}.{node.attr}", dims=dims)
            if held.op in _PAIRS and node.attr in ("values", "indices"):
                return _item(held, ("values", "indices").index(node.attr))
            if node.attr in ("T", "mT", "shape", "dtype", "device"):
                return Expr(node.attr, (held,))
        raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`")

    def _member(self, name: str) -> Value:
        made, path = self._attributes.get(name), f"self.{name}"
        if made is None:
            raise NotRecognised(f"rules do not know where {path} comes from")
        if isinstance(made, ast.Call):
            kind = self._module.dotted(made.func) or ast.unparse(made.func)
            if kind == "torch.nn.Parameter" or kind.endswith("register_buffer"):
                dims, integer = Inputs(self._module).one(made.args[0], {})
                return Expr("parameter", text=path, dims=dims, integer=integer)
            if kind.startswith("torch.nn."):
                return self._layer(path, kind.rpartition(".")[2], made)
            if kind.startswith("torch."):
                raise NotRecognised(f"rules do not know the tensor {path}")
        check_told(path, made)
        try:
            return Expr("number", text=path, known=self._module.plain(made))
        except NotRecognised:
            return Expr("number", text=path)

    def _layer(self, path: str, kind: str, made: ast.Call) -> Expr:
        if is_sequence(f"torch.nn.{kind}"):
            inner = layers_of(self._module, path, made)
            parts = [self._layer(at, each.rpartition(".")[2], by) for at, each, by in inner]
            return Expr("layer", tuple(parts), (("kind", kind),), text=path)
        if is_idle(self._module, f"torch.nn.{kind}"):
            return Expr("layer", settings=(("kind", kind),), text=path)
        names = _LAYERS.get(kind) or LAYERS.get(kind, ("", ""))[1]
        if len(made.args) > len(names.split()):
            raise NotRecognised(f"rules do not know torch.nn.{kind}")
        given = [*zip(names.split(), made.args, strict=False)]
        given += [(k.arg, k.value) for k in made.keywords if k.arg]
        settings: list[tuple[str, Value]] = [("kind", kind)]
        for name, value in given:
            try:
                settings.append((name, self._module.plain(value)))
            except NotRecognised:
                settings.append((name, Expr("number", text=ast.unparse(value))))
        return Expr("layer", settings=tuple(settings), text=path)

    def _arguments(self, node: ast.Call) -> tuple[Value, ...]:
        return tuple(self._value(each) for each in node.args)

    def _keywords(self, node: ast.Call) -> tuple[tuple[str, Value], ...]:
        return tuple(
            (RENAMED.get(k.arg, k.arg), self._value(k.value)) for k in node.keywords if k.arg
        )

    def _through(
        self, layer: Expr, args: tuple[Value, ...], keywords: tuple[tuple[str, Value], ...]
    ) -> Value:
        """What a layer makes of what it is given."""
        kind = f"torch.nn.{layer.setting('kind')}"
        if is_sequence(kind) and len(args) == 1:
            for each in layer.args:
                assert isinstance(each, Expr)
                args = (self._through(each, args, ()),)
            return args[0]
        if is_idle(self._module, kind) and len(args) == 1:
            return args[0]
        if keywords and kind not in _ASKED:
            raise NotRecognised(f"rules do not know {kind} asked for {keywords[0][0]}")
        return Expr("layer", args, layer.settings + keywords, text=layer.text)

    def _call(self, node: ast.Call) -> Value:
        if (kept := undropped(self._module, node)) is not None:
            return self._value(kept)
        if (number := number_in(self._module, node)) is not None:
            value = self._value(number)
            check_number(value, value.known if isinstance(value, Expr) else None)
            return value
        args, keywords = self._arguments(node), self._keywords(node)
        dotted = self._module.dotted(node.func)
        given = [node.func.value, *node.args] if dotted is None and isinstance(
            node.func, ast.Attribute) else node.args  # fmt: skip
        by_number = len(given) == 2 and number_in(self._module, given[1]) is not None
        if dotted is not None:
            if dotted.startswith("math."):
                return self._module.plain(node)
            if not dotted.startswith("torch."):
                raise NotRecognised(f"rules do not know {dotted}")
            name = dotted.rpartition(".")[2]
            check_norm(dotted, len(args), args[2] if len(args) > 2 else dict(keywords).get("dim"))
            return Expr(f"{name}imum" if by_number and name in _EXTREMES else name, args, keywords)
        if isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
                held = self._member(node.func.attr)
                if isinstance(held, Expr) and held.op == "layer":
                    return self._through(held, args, keywords)
            else:
                held = self._value(node.func.value)
                if isinstance(held, Expr) and not node.func.attr.endswith("_"):
                    name = node.func.attr
                    name = f"{name}imum" if by_number and name in _EXTREMES else name
                    return Expr(name, (held, *args), keywords)
                changes = node.func.attr in _IN_PLACE and isinstance(node.func.value, ast.Call)
                if changes and isinstance(held, Expr) and held.op in _FRESH:
                    return Expr(node.func.attr[:-1], (held, *args), keywords)
        match node:
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
                if text.strip("+-").lower() in ("inf", "infinity"):
                    return float(text)
        raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`")


def _pieces(items: list[ast.expr]) -> list[Value] | None:
    """``[:, -1:]`` as ``":"`` and ``"-1:"``: slices and places by whole numbers; else nothing."""
    texts = [ast.unparse(each) for each in items]
    if any(not re.fullmatch(r"\.\.\.|None|-?\d+|(-?\d+)?:(-?\d+)?", each) for each in texts):
        return None
    if all(each in (":", "...", "None") for each in texts):
        return None
    found: list[Value] = []
    for each in texts:
        whole = re.fullmatch(r"-?\d+", each)
        found.append(int(each) if whole else None if each == "None" else each)
    return found


def _table(layer: Expr) -> tuple[str, ...] | None:
    """The dimensions of an embedding's weight."""
    sizes = [layer.setting(name) for name in ("num_embeddings", "embedding_dim")]
    if any(each is None for each in sizes):
        return None
    return tuple(each.text if isinstance(each, Expr) else str(each) for each in sizes)


def _holds(value: Value, part: Value) -> bool:
    """Whether a value is, or is computed from, another."""
    if value == part:
        return True
    if isinstance(value, tuple):
        return any(_holds(each, part) for each in value)
    if isinstance(value, Expr):
        return any(_holds(each, part) for each in (*value.args, *(v for _, v in value.settings)))
    return False


def _item(held: Value, index: int) -> Value:
    if isinstance(held, Expr):
        return Expr("item", (held, index))
    if isinstance(held, tuple) and -len(held) <= index < len(held):
        return held[index]
    raise NotRecognised("rules do not know indexing of this value")


def _text(value: Value) -> str:
    if isinstance(value, Expr):
        return value.text
    if isinstance(value, int | float):
        return repr(value)
    raise NotRecognised(f"rules do not know how to compute with {value!r}")


def _known(name: str, a: Value, b: Value) -> Plain:
    """Whole numbers are followed through sums and products: sizes are computed that way."""
    x, y = (each.known if isinstance(each, Expr) else each for each in (a, b))
    if not (type(x) is int and type(y) is int):
        return None
    return {"add": x + y, "sub": x - y, "mul": x * y}.get(name)


def _unknown(statement: ast.stmt) -> NotRecognised:
    line = ast.unparse(statement).splitlines()[0]
    return NotRecognised(f"rules do not know the statement `{line[:60]}`")
