"""Functions that the graph has a word for, from their arguments as recorded."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import Dims, Value


class Otherwise(Exception):
    """A known function in a use that the graph has no word for: it stays a call."""


class Reader(Protocol):
    """What knows which node a recorded tensor is."""

    build: Build

    def node(self, said: Any) -> int:
        """The node of a tensor or number."""
        ...

    def optional(self, said: Any) -> int:
        """The same, or ``NONE``."""
        ...


def dims(said: Any) -> Dims:
    """One axis, or several."""
    match said:
        case bool():
            raise Otherwise
        case int():
            return (said,)
        case {"tuple": items} | {"list": items}:
            return tuple(each for item in items for each in dims(item))
    raise Otherwise


def _number(said: Any) -> float | int:
    match said:
        case bool():
            raise Otherwise
        case int() | float():
            return said
        case {"float": text}:
            return float(text)
    raise Otherwise


def _each(said: Any, rank: int) -> Dims:
    """One number for all dimensions, or one for each."""
    found = dims(said)
    return found * rank if len(found) == 1 else found


Given = Mapping[str, Any]


def _clamp(r: Reader, given: Given, low: str = "min", high: str = "max") -> int:
    bounds = [None if given.get(each) is None else _number(given[each]) for each in (low, high)]
    return r.build.clamp(r.node(given["input"]), *bounds)


def _hardtanh(r: Reader, given: Given) -> int:
    return _clamp(r, {"min_val": -1.0, "max_val": 1.0, **given}, "min_val", "max_val")


def _pow(r: Reader, given: Given) -> int:
    match _number(given["exponent"]):
        case 2:
            return r.build.unary("square", r.node(given["input"]))
        case 0.5:
            return r.build.unary("sqrt", r.node(given["input"]))
    raise Otherwise


def _with(op: str, **defaults: float | str) -> Callable[[Reader, Given], int]:
    def make(r: Reader, given: Given) -> int:
        attrs: dict[str, Value] = {}
        for key, usual in defaults.items():
            said = given.get(key, usual)
            attrs[key] = said if isinstance(said, str) else _number(said)
        return r.build.unary(op, r.node(given["input"]), **attrs)

    return make


def _softmax(op: str) -> Callable[[Reader, Given], int]:
    def make(r: Reader, given: Given) -> int:
        if given.get("dtype") is not None:
            raise Otherwise
        return r.build.softmax(op, r.node(given["input"]), *dims(given["dim"]))

    return make


def _linear(r: Reader, given: Given) -> int:
    x, w = r.node(given["input"]), r.node(given["weight"])
    if len(r.build.arena.shape(w)) != 2:
        raise Otherwise
    return r.build.linear(x, w, r.optional(given.get("bias")))


def _conv(r: Reader, given: Given) -> int:
    x, w = r.node(given["input"]), r.node(given["weight"])
    rank = len(r.build.arena.shape(w)) - 2
    if len(r.build.arena.shape(x)) != rank + 2:
        raise Otherwise
    return r.build.conv(
        x, w, r.optional(given.get("bias")), stride=_each(given.get("stride", 1), rank),
        padding=_each(given.get("padding", 0), rank), groups=int(_number(given.get("groups", 1))),
        dilation=_each(given.get("dilation", 1), rank),
    )  # fmt: skip


def _conv_transpose(r: Reader, given: Given) -> int:
    x, w = r.node(given["input"]), r.node(given["weight"])
    rank = len(r.build.arena.shape(w)) - 2
    if len(r.build.arena.shape(x)) != rank + 2:
        raise Otherwise
    return r.build.conv_transpose(
        x, w, r.optional(given.get("bias")), stride=_each(given.get("stride", 1), rank),
        padding=_each(given.get("padding", 0), rank), groups=int(_number(given.get("groups", 1))),
        dilation=_each(given.get("dilation", 1), rank),
        output_padding=_each(given.get("output_padding", 0), rank),
    )  # fmt: skip


def _batch_norm(r: Reader, given: Given) -> int:
    if given.get("training", False) or given.get("running_mean") is None:
        raise Otherwise
    inputs = tuple(
        r.optional(given.get(each))
        for each in ("input", "running_mean", "running_var", "weight", "bias")
    )
    return r.build.norm("batch_norm", inputs, eps=_number(given.get("eps", 1e-5)))


def _instance_norm(r: Reader, given: Given) -> int:
    if given.get("running_mean") is not None or not given.get("use_input_stats", True):
        raise Otherwise
    inputs = tuple(r.optional(given.get(each)) for each in ("input", "weight", "bias"))
    return r.build.norm("instance_norm", inputs, eps=_number(given.get("eps", 1e-5)))


def _group_norm(r: Reader, given: Given) -> int:
    inputs = tuple(r.optional(given.get(each)) for each in ("input", "weight", "bias"))
    return r.build.norm("group_norm", inputs, eps=_number(given.get("eps", 1e-5)),
                        groups=int(_number(given["num_groups"])))  # fmt: skip


def _layer_norm(r: Reader, given: Given) -> int:
    inputs = tuple(r.optional(given.get(each)) for each in ("input", "weight", "bias"))
    return r.build.norm("layer_norm", inputs, eps=_number(given.get("eps", 1e-5)),
                        rank=len(dims(given["normalized_shape"])))  # fmt: skip


def _pool(op: str, rank: int) -> Callable[[Reader, Given], int]:
    def make(r: Reader, given: Given) -> int:
        kernel = _each(given["kernel_size"], rank)
        stride = kernel if given.get("stride") in (None, {"list": []}) else _each(
            given["stride"], rank)  # fmt: skip
        padding = _each(given.get("padding", 0), rank)
        plain = not given.get("ceil_mode", False) and given.get("divisor_override") is None
        plain = plain and _each(given.get("dilation", 1), rank) == (1,) * rank
        if not plain or given.get("return_indices", False) or (op == "avg_pool" and any(padding)):
            raise Otherwise
        return r.build.pool(op, r.node(given["input"]), kernel, stride, padding)

    return make


def _adaptive(rank: int) -> Callable[[Reader, Given], int]:
    def make(r: Reader, given: Given) -> int:
        x = r.node(given["input"])
        space = r.build.arena.shape(x)[-rank:]
        want = _each(given["output_size"], rank)
        if any(n % m for n, m in zip(space, want, strict=True)):
            raise Otherwise
        if want == (1,) * rank:
            return r.build.reduce("mean", x, range(-rank, 0), keep=True)
        kernel = tuple(n // m for n, m in zip(space, want, strict=True))
        return r.build.pool("avg_pool", x, kernel, kernel)

    return make


def _matmul(r: Reader, given: Given) -> int:
    return r.build.matmul(r.node(given["input"]), r.node(given["other"]))


def _triangle(op: str) -> Callable[[Reader, Given], int]:
    def make(r: Reader, given: Given) -> int:
        diagonal = int(_number(given.get("diagonal", 0)))
        return r.build.unary(op, r.node(given["input"]), diagonal=diagonal)

    return make


def _diag(r: Reader, given: Given) -> int:
    x = r.node(given["input"])
    if given.get("diagonal", 0) != 0 or len(r.build.arena.shape(x)) != 1:
        raise Otherwise
    return r.build.diag(x)


def _joined(op: str) -> Callable[[Reader, Given], int]:
    def make(r: Reader, given: Given) -> int:
        parts = [r.node(each) for each in next(iter(given["tensors"].values()))]
        shapes = [r.build.arena.shape(each) for each in parts]
        rank = len(shapes[0]) + (op == "stack")
        if len({len(each) for each in shapes}) != 1 or any(0 in each for each in shapes):
            raise Otherwise
        dim = int(_number(given.get("dim", 0))) % rank
        return r.build.cat(parts, dim) if op == "cat" else r.build.stack(parts, dim)

    return make


def _transpose(r: Reader, given: Given) -> int:
    x = r.node(given["input"])
    rank = len(r.build.arena.shape(x))
    order = list(range(rank))
    if "dim0" not in given and rank < 2:
        raise Otherwise
    a, b = (int(_number(given.get(key, usual))) % rank for key, usual in
            (("dim0", -2), ("dim1", -1)))  # fmt: skip
    order[a], order[b] = order[b], order[a]
    return r.build.permute(x, tuple(order))


def _reversed(r: Reader, given: Given) -> int:
    x = r.node(given["input"])
    return r.build.permute(x, tuple(range(len(r.build.arena.shape(x))))[::-1])


FUNCTIONS: dict[str, Callable[[Reader, Given], int]] = {
    "relu6": lambda r, given: r.build.clamp(r.node(given["input"]), 0.0, 6.0),
    "gelu": _with("gelu", approximate="none"),
    "leaky_relu": _with("leaky_relu", negative_slope=0.01),
    "elu": _with("elu", alpha=1.0),
    "softplus": _with("softplus", beta=1.0, threshold=20.0),
    "hardtanh": _hardtanh,
    **dict.fromkeys(("clamp", "clamp_", "clip", "clamp_min", "clamp_max"), _clamp),
    **dict.fromkeys(("pow", "__pow__"), _pow),
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "linear": _linear,
    **{f"conv{n}d": _conv for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _conv_transpose for n in (1, 2, 3)},
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "group_norm": _group_norm,
    "layer_norm": _layer_norm,
    **{f"avg_pool{n}d": _pool("avg_pool", n) for n in (1, 2, 3)},
    **{f"max_pool{n}d": _pool("max_pool", n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive(n) for n in (1, 2, 3)},
    **dict.fromkeys(("matmul", "__matmul__", "mm", "bmm"), _matmul),
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "diag": _diag,
    **dict.fromkeys(("cat", "concat"), _joined("cat")),
    "stack": _joined("stack"),
    "transpose": _transpose,
    "t": _transpose,
    "mT": _transpose,
    "T": _reversed,
}
