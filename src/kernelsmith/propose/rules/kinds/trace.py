"""What ``forward`` returns as one expression: calls by their names, nothing of it run."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernelsmith.propose.rules.functions import LAYERS, RENAMED
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.source import Module, Plain, Unknown, attributes

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
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
    "CrossEntropyLoss": "weight size_average ignore_index reduce reduction label_smoothing",
}  # fmt: skip
"""Layers that some kind knows, with the names of their settings in order."""
_INTEGERS = {"randint": 2, "arange": 0, "randperm": 0}
"""Makers of integer inputs, and the position of the size where there is one."""
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
}  # fmt: skip
"""Names that the kernels of these kinds use themselves."""
_FLOATS = {"rand", "randn", "ones", "zeros", "empty", "full", "normal"}


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
    return f"{name}_" if name in _TAKEN or re.fullmatch(r"[vsrame]\d+", name) else name


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
        found = _Inputs(self._module).all()
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
                    return self._value(value)
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._names[name] = self._value(value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    held = self._value(value)
                    for i, target in enumerate(targets):
                        if not isinstance(target, ast.Name):
                            raise _unknown(statement)
                        self._names[target.id] = _item(held, i)
                case _:
                    raise _unknown(statement)
        raise NotRecognised("rules find no value that forward returns")

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
            case ast.Call():
                return self._call(node)
        try:
            return self._module.plain(node)
        except Unknown:
            raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`") from None

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
                return Expr("parameter", text=f"{held.text}.{node.attr}")
            if held.op in ("max", "min", "topk") and node.attr in ("values", "indices"):
                return _item(held, ("values", "indices").index(node.attr))
            if node.attr in ("T", "mT"):
                return Expr(node.attr, (held,))
        raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`")

    def _member(self, name: str) -> Value:
        made, path = self._attributes.get(name), f"self.{name}"
        if made is None:
            raise NotRecognised(f"rules do not know where {path} comes from")
        if isinstance(made, ast.Call):
            kind = self._module.dotted(made.func) or ast.unparse(made.func)
            if kind == "torch.nn.Parameter" or kind.endswith("register_buffer"):
                dims, integer = _Inputs(self._module).one(made.args[0], {})
                return Expr("parameter", text=path, dims=dims, integer=integer)
            if kind.startswith("torch.nn."):
                return self._layer(path, kind.rpartition(".")[2], made)
            if kind.startswith("torch."):
                raise NotRecognised(f"rules do not know the tensor {path}")
        try:
            return Expr("number", text=path, known=self._module.plain(made))
        except NotRecognised:
            return Expr("number", text=path)

    def _layer(self, path: str, kind: str, made: ast.Call) -> Expr:
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

    def _call(self, node: ast.Call) -> Value:
        args = tuple(self._value(each) for each in node.args)
        keywords = tuple(
            (RENAMED.get(k.arg, k.arg), self._value(k.value)) for k in node.keywords if k.arg
        )
        dotted = self._module.dotted(node.func)
        if dotted is not None:
            if dotted.startswith("math."):
                return self._module.plain(node)
            if not dotted.startswith("torch."):
                raise NotRecognised(f"rules do not know {dotted}")
            return Expr(dotted.rpartition(".")[2], args, keywords)
        if isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
                held = self._member(node.func.attr)
                if isinstance(held, Expr) and held.op == "layer":
                    return Expr("layer", args, held.settings + keywords, text=held.text)
            else:
                held = self._value(node.func.value)
                if isinstance(held, Expr) and not node.func.attr.endswith("_"):
                    return Expr(node.func.attr, (held, *args), keywords)
        raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}`")


class _Inputs:
    """The form of what ``get_inputs`` makes, as written there."""

    def __init__(self, module: Module) -> None:
        self._module = module
        functions = [n for n in module.tree.body if isinstance(n, ast.FunctionDef)]
        self._maker = next((n for n in functions if n.name == "get_inputs"), None)

    def all(self) -> list[tuple[tuple[str, ...] | None, bool]]:
        if self._maker is None or not isinstance(self._maker.body[-1], ast.Return):
            raise NotRecognised("rules cannot tell which inputs get_inputs() makes")
        values = self._maker.body[-1].value
        local = {
            each.targets[0].id: each.value
            for each in self._maker.body
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        }
        if isinstance(values, ast.Name):
            values = local.get(values.id)
        if not isinstance(values, ast.List | ast.Tuple):
            raise NotRecognised("rules cannot tell which inputs get_inputs() makes")
        return [self.one(each, local) for each in values.elts]

    def one(
        self, node: ast.expr, local: Mapping[str, ast.expr], depth: int = 0
    ) -> tuple[tuple[str, ...] | None, bool]:
        if depth > 8:
            return None, False
        match node:
            case ast.Name(id=name) if name in local:
                return self.one(local[name], local, depth + 1)
            case ast.BinOp(left=left, right=right):
                sides = [self.one(each, local, depth + 1) for each in (left, right)]
                return max(sides, key=lambda side: len(side[0] or ()))
            case ast.Call(func=func, args=args, keywords=keywords):
                name = (self._module.dotted(func) or "").rpartition(".")[2]
                if name in _INTEGERS:
                    size = [k.value for k in keywords if k.arg == "size"] or args[2:3]
                    if name == "randint" and len(args) == 2 and not size:
                        size = args[1:2]
                    return (self._dimensions(size, local, depth) if size else None), True
                if name in _FLOATS:
                    sized = args[:1] if name == "full" else args
                    return self._dimensions(sized, local, depth), False
                if isinstance(func, ast.Attribute) and self._module.dotted(func) is None:
                    dims, integer = self.one(func.value, local, depth + 1)
                    return dims, (integer or func.attr == "bool") and func.attr != "float"
                if args:
                    return self.one(args[0], local, depth + 1)
        return None, False

    def _dimensions(
        self, args: list[ast.expr], local: Mapping[str, ast.expr], depth: int
    ) -> tuple[str, ...] | None:
        if len(args) == 1:
            match args[0]:
                case ast.Tuple(elts=elements) | ast.List(elts=elements):
                    args = elements
                case ast.Attribute(value=value, attr="shape"):
                    return self.one(value, local, depth + 1)[0]
        flat: list[str] = []
        for each in args:
            inner = each.value if isinstance(each, ast.Starred) else each
            held = self._module.constants.get(inner.id) if isinstance(inner, ast.Name) else None
            if isinstance(held, ast.Tuple | ast.List):
                flat += [ast.unparse(e) for e in held.elts]
            elif isinstance(each, ast.Starred):
                return None
            else:
                flat.append(ast.unparse(each))
        return tuple(flat)


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
