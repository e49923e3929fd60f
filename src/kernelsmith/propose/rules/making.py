"""What expressions of ``get_inputs`` and constructors make, as their text tells: dtype and size.

Nothing is run. What is not surely known is ``None``, and nobody may guess it then.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

Dims = tuple[str, ...]
"""Dimensions as written, each an expression of one whole number."""

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
_DTYPES = {each: each for each in (*FLOATS, *INTEGERS, "bool")} | {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8",
}  # fmt: skip
_BUILTIN = {"float": "float64", "int": "int64", "bool": "bool"}

_DRAWN = {"rand", "randn", "ones", "zeros", "empty"}
_LIKE = {f"{each}_like" for each in (*_DRAWN, "full")}
_FILLED = {"uniform_", "normal_", "fill_", "zero_", "exponential_", "xavier_uniform_",
           "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "trunc_normal_", "constant_",
           "zeros_", "ones_"}  # fmt: skip
_KEPT = {"clone", "contiguous", "detach", "cuda", "cpu", "abs", "neg", "relu", "flip", "roll",
         "tril", "triu", "requires_grad_", "sign", "square"}  # fmt: skip
"""Same dtype and size as the first argument, whatever it is."""
_SMOOTH = {"exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid",
           "softmax", "log_softmax", "normalize", "softplus", "gelu", "silu", "reciprocal", "erf",
           "floor", "ceil", "round", "cumsum", "cumprod", "bernoulli", "logsigmoid",
           "layer_norm", "leaky_relu", "elu", "atanh", "logit"}  # fmt: skip
"""Same dtype and size as the first argument where that is floating."""
_CLAMPED = {"clamp", "clip", "clamp_min", "clamp_max"}
_JOINED = {"add", "sub", "mul", "div", "maximum", "minimum", "multiply", "subtract", "divide"}
_COMPARED = {"gt", "ge", "lt", "le", "eq", "ne", "greater", "less", "logical_and", "logical_or"}
_TESTED = {"isnan", "isfinite", "isinf", "logical_not"}
_REDUCED = {"sum", "mean", "amax", "amin", "std", "var", "norm", "prod", "repeat", "flatten",
            "squeeze", "diag", "diagonal", "select", "narrow", "index_select", "movedim",
            "repeat_interleave", "as_strided", "cholesky", "inverse"}  # fmt: skip
"""Same dtype as the first argument where that is floating, of another size."""
_MULTIPLIED = {"matmul", "mm", "bmm", "outer", "mv", "dot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What is known of a value."""

    dtype: str | None = None
    shape: Dims | None = None
    number: bool = False
    """A number of Python's: it takes part in arithmetic, but brings no size or precision."""

    @property
    def is_floating(self) -> bool:
        """Whether it is surely a tensor of floats, or a number that is one."""
        return self.dtype in FLOATS


NOTHING = Made()


class Names(Protocol):
    """What the expressions below may refer to."""

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of an imported thing."""
        ...

    def value(self, node: ast.expr) -> int | float | tuple[int, ...] | None:
        """A number or sizes that are the same in all workloads; ``None``: not told."""
        ...

    def is_number(self, node: ast.expr) -> bool:
        """Whether it is one plain number, not a tensor or a tuple, in every workload."""
        ...

    def is_size(self, node: ast.expr) -> bool:
        """Whether it is one whole number in every workload."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """Reads expressions whose names mean what ``names`` says."""

    names: Names
    default: str | None = "float32"
    """What tensors are of where nothing is said."""

    def made(self, node: ast.expr) -> Made:
        """What this gives."""
        match node:
            case ast.Constant(value=bool()):
                return Made(dtype="bool", shape=(), number=True)
            case ast.Constant(value=int()):
                return Made(dtype="int64", shape=(), number=True)
            case ast.Constant(value=float()):
                return Made(dtype="float32", shape=(), number=True)
            case ast.Call():
                called = self._called(node)
                return called if called != NOTHING else self._number(node)
            case ast.Compare(left=left, comparators=[right]):
                return replace(self._joined(left, right), dtype="bool")
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return replace(self._joined(left, right), shape=None)
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(node, left, op, right)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self.made(operand)
            case ast.Attribute(value=value, attr="T" | "mT") if self.names.dotted(node) is None:
                return _turned(self.made(value))
            case ast.Subscript(value=value, slice=index):
                return self._indexed(self.made(value), index)
        return self._number(node)

    def _number(self, node: ast.expr) -> Made:
        if not self.names.is_number(node):
            return NOTHING
        value = self.names.value(node)
        whole = self.names.is_size(node)
        known = whole or isinstance(value, float)
        dtype = ("int64" if whole else "float32") if known else None
        return Made(dtype=dtype, shape=(), number=True)

    def _arithmetic(
        self, node: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr
    ) -> Made:
        if self.names.is_number(node):
            return self._number(node)
        joined = self._joined(left, right)
        if isinstance(op, ast.Div) and joined.dtype in (*INTEGERS, "bool"):
            return replace(joined, dtype=self.default)
        return joined

    def _joined(self, *nodes: ast.expr) -> Made:
        found = [self.made(each) for each in nodes]
        made = found[0]
        for each in found[1:]:
            made = Made(
                dtype=self._promoted(made, each), shape=_spread(made.shape, each.shape),
                number=made.number and each.number,
            )  # fmt: skip
        return made

    def _promoted(self, a: Made, b: Made) -> str | None:
        if a.number and not b.number:
            a, b = b, a
        if b.number and not a.number:
            if a.is_floating:
                return a.dtype
            return self.default if b.is_floating and a.dtype is not None else (
                a.dtype if b.dtype == "bool" or (b.dtype == "int64" and a.dtype in INTEGERS)
                else None
            )  # fmt: skip
        if a.dtype == b.dtype:
            return a.dtype
        kinds = {each.dtype for each in (a, b)}
        # A tensor without dimensions does not widen one of its own kind: only float32 is sure.
        exact = {"float32", "bool", *INTEGERS}
        return "float32" if "float32" in kinds and kinds <= exact else None

    def _indexed(self, made: Made, index: ast.expr) -> Made:
        if made.number:
            return NOTHING
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        sizes, rest = [], list(made.shape or ())
        for each in parts:
            match each:
                case ast.Constant(value=None):
                    sizes.append("1")
                    continue
                case ast.Slice(lower=None, upper=None, step=None) if rest:
                    sizes.append(rest.pop(0))
                    continue
                case ast.Constant(value=int() as at) if rest and not isinstance(at, bool):
                    rest.pop(0)
                    continue
            return replace(made, shape=None)
        return replace(made, shape=(*sizes, *rest) if made.shape is not None else None)

    def _called(self, node: ast.Call) -> Made:
        dotted = self.names.dotted(node.func)
        keywords = {each.arg: each.value for each in node.keywords if each.arg}
        if len(keywords) != len(node.keywords) or "out" in keywords:
            return NOTHING
        if dotted is not None and dotted.startswith("torch."):
            name, args = dotted.rpartition(".")[2], node.args
            if "input" in keywords:
                args = [keywords["input"], *args]
            if dotted.count(".") == 1 and (fresh := self._fresh(name, args, keywords)) is not None:
                return self._as_said(fresh, keywords)
        elif dotted is None and isinstance(node.func, ast.Attribute):
            name, args = node.func.attr, [node.func.value, *node.args]
            if (cast := self._cast(name, args, keywords)) is not None:
                return cast
        else:
            return NOTHING
        return self._as_said(self._worked(name, args, keywords), keywords)

    def _as_said(self, made: Made, keywords: Mapping[str, ast.expr]) -> Made:
        """With the dtype that is asked for, where one is."""
        said = keywords.get("dtype")
        if said is None or _is_none(said):
            return made
        return replace(made, dtype=self.dtype_named(said))

    def dtype_named(self, node: ast.expr) -> str | None:
        """``torch.float64`` or ``x.dtype``."""
        dotted = self.names.dotted(node) or ""
        if dotted.startswith("torch."):
            return _DTYPES.get(dotted.removeprefix("torch."))
        match node:
            case ast.Name(id=name):
                return _BUILTIN.get(name)
            case ast.Attribute(value=value, attr="dtype"):
                made = self.made(value)
                return None if made.number else made.dtype
        return None

    def _fresh(
        self, name: str, args: list[ast.expr], keywords: Mapping[str, ast.expr]
    ) -> Made | None:
        """What makers of tensors make; none of other functions."""
        size, default = keywords.get("size"), self.default
        if name in _DRAWN:
            return Made(dtype=default, shape=self._sizes([size] if size is not None else args))
        if name == "full":
            value = keywords.get("fill_value", args[-1] if len(args) > 1 else None)
            filled = self.made(value) if value is not None else NOTHING
            dtype = default if filled.is_floating else filled.dtype
            size = size if size is not None else args[0] if args else None
            return Made(dtype=dtype, shape=self._sizes([size]) if size is not None else None)
        if name == "tensor" and args:
            return self._written(args[0])
        if name == "randint":
            size = size if size is not None else args[-1] if len(args) > 1 else None
            return Made(dtype="int64", shape=self._sizes([size]) if size is not None else None)
        if name == "randperm":
            return Made(dtype="int64", shape=self._sizes(args[:1]))
        if name in ("linspace", "logspace"):
            steps = keywords.get("steps", args[2] if len(args) > 2 else None)
            return Made(dtype=default, shape=self._sizes([steps]) if steps is not None else None)
        if name == "eye":
            return Made(dtype=default, shape=self._sizes((args * 2)[:2]))
        if name == "arange":
            found = [self.made(each) for each in args]
            whole = all(each.number and each.dtype == "int64" for each in found)
            real = any(each.number and each.is_floating for each in found)
            shape = self._sizes(args) if whole and len(args) == 1 else None
            return Made(dtype="int64" if whole else default if real else None, shape=shape)
        if name == "normal":
            size = size if size is not None else args[2] if len(args) > 2 else None
            drawn = default if size is not None else None
            return Made(dtype=drawn, shape=self._sizes([size]) if size is not None else None)
        return None

    def _written(self, node: ast.expr) -> Made:
        """``torch.tensor`` of numbers, and of lists of them."""
        if not isinstance(node, ast.List | ast.Tuple):
            made = self.made(node)
            dtype = self.default if made.is_floating else made.dtype
            return Made(dtype=dtype, shape=()) if made.number else NOTHING
        parts = [self._written(each) for each in node.elts]
        kinds = {each.dtype for each in parts}
        shapes = {each.shape for each in parts}
        shape = shapes.pop() if len(shapes) == 1 else None
        dtype = kinds.pop() if len(kinds) == 1 else None
        if self.default in kinds and kinds <= {self.default, "int64", "bool"}:
            dtype = self.default
        return Made(dtype=dtype, shape=None if shape is None else (str(len(parts)), *shape))

    def _cast(
        self, name: str, args: list[ast.expr], keywords: Mapping[str, ast.expr]
    ) -> Made | None:
        """What methods that change the dtype give; none of others."""
        if name in _DTYPES:
            return replace(self._tensor(args[0]), dtype=_DTYPES[name])
        if name == "type_as" and len(args) == 2:
            return replace(self._tensor(args[0]), dtype=self._tensor(args[1]).dtype)
        if name not in ("to", "type"):
            return None
        made = self._tensor(args[0])
        for each in (*args[1:], *(value for key, value in keywords.items() if key == "dtype")):
            if not (name == "to" and self._is_device(each)):
                made = replace(made, dtype=self.dtype_named(each))
        return made

    def _is_device(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=str()) | ast.Name(id="device") | ast.Attribute(attr="device"):
                return True
            case ast.IfExp(body=body, orelse=other):
                return self._is_device(body) and self._is_device(other)
            case ast.Call(func=func):
                return self.names.dotted(func) == "torch.device"
        return False

    def _tensor(self, node: ast.expr) -> Made:
        made = self.made(node)
        return NOTHING if made.number else made

    def _worked(self, name: str, args: list[ast.expr], keywords: Mapping[str, ast.expr]) -> Made:
        if not args:
            return NOTHING
        first = self._tensor(args[0])
        if name in _FILLED or name in _KEPT | _LIKE or name.removesuffix("_") in _KEPT:
            return first
        if name.removesuffix("_") in _SMOOTH:
            return first if first.is_floating else NOTHING
        if name.removesuffix("_") in _CLAMPED:
            bounds = [*args[1:], *keywords.values()]
            plain = all(self.made(each).number or _is_none(each) for each in bounds)
            return first if plain and first.is_floating else NOTHING
        if name in _JOINED and len(args) == 2:
            joined = self._joined(*args)
            return joined if joined.is_floating else NOTHING
        if name.removesuffix("_") in _JOINED:
            return first if first.is_floating else NOTHING
        if name == "pow" and len(args) == 2 and first.is_floating:
            return first if self.made(args[1]).number else NOTHING
        if name == "where" and len(args) == 3:
            joined = self._joined(*args[1:])
            shape = _spread(joined.shape, self.made(args[0]).shape)
            dtype = self.default if joined.number else joined.dtype
            return Made(dtype=dtype, shape=shape) if joined.is_floating else NOTHING
        if name in _COMPARED and len(args) == 2:
            return Made(dtype="bool", shape=self._joined(*args).shape)
        if name in _TESTED:
            return replace(first, dtype="bool")
        if name in _MULTIPLIED and len(args) == 2:
            return replace(self._joined(*args), shape=None)
        if name in ("cat", "stack", "concat") and isinstance(args[0], ast.List | ast.Tuple):
            kinds = {self._tensor(each).dtype for each in args[0].elts}
            return Made(dtype=kinds.pop() if len(kinds) == 1 else None)
        if name in _REDUCED:
            return Made(dtype=first.dtype if first.is_floating else None)
        return self._laid_out(name, first, args[1:])

    def _laid_out(self, name: str, first: Made, args: list[ast.expr]) -> Made:
        """The same values under another shape."""
        numbers = [self.names.value(each) for each in args]
        shape = first.shape
        match name, numbers:
            case "t", []:
                return _turned(first)
            case "transpose" | "swapaxes", [int() as a, int() as b]:
                if shape is None or not all(-len(shape) <= each < len(shape) for each in (a, b)):
                    return replace(first, shape=None)
                order = list(shape)
                order[a], order[b] = order[b], order[a]
                return replace(first, shape=tuple(order))
            case "permute", [*places]:
                places = list(places[0]) if isinstance(places[0], tuple) else places
                known = [each for each in places if isinstance(each, int)]
                if shape is None or len(known) != len(shape) or len(places) != len(shape):
                    return replace(first, shape=None)
                return replace(first, shape=tuple(shape[each] for each in known))
            case "unsqueeze", [int() as at]:
                if shape is None or not -len(shape) - 1 <= at <= len(shape):
                    return replace(first, shape=None)
                at = at if at >= 0 else len(shape) + 1 + at
                return replace(first, shape=(*shape[:at], "1", *shape[at:]))
            case "view", [None] if not self.names.is_size(args[0]):
                return NOTHING  # it may be a dtype
            case "view" | "reshape" | "expand", [_, *_]:
                below = any(
                    isinstance(n, int) and n < 0
                    for each in numbers for n in (each if isinstance(each, tuple) else [each])
                )  # fmt: skip
                return replace(first, shape=None if below else self._sizes(args))
        return NOTHING

    def _sizes(self, args: list[ast.expr]) -> Dims | None:
        """Dimensions from arguments, one by one or all in one."""
        if not args:
            return None
        alone = len(args) == 1
        if alone and isinstance(args[0], ast.Tuple | ast.List):
            args, alone = args[0].elts, False
        flat: list[str] = []
        for each in args:
            if self.names.is_size(each) or not (alone or isinstance(each, ast.Starred)):
                flat.append(ast.unparse(each))
                continue
            value = self.names.value(each.value if isinstance(each, ast.Starred) else each)
            if not isinstance(value, tuple):
                return None
            flat += [repr(size) for size in value]
        untold = (n for each in args for n in ast.walk(each) if isinstance(n, ast.Constant))
        return None if any(each.value is ... for each in untold) else tuple(flat)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _turned(made: Made) -> Made:
    """Of two dimensions, in the other order."""
    shape = made.shape
    return replace(made, shape=shape[::-1] if shape is not None and len(shape) == 2 else None)


def _spread(a: Dims | None, b: Dims | None) -> Dims | None:
    """The dimensions of an elementwise result; none where they cannot be told."""
    if a is None or b is None:
        return None
    longest = max(len(a), len(b))
    pairs = zip(("1",) * (longest - len(a)) + a, ("1",) * (longest - len(b)) + b, strict=True)
    found = [y if x == "1" else x for x, y in pairs if x == y or "1" in (x, y)]
    return tuple(found) if len(found) == longest else None
