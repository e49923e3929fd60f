"""Names of torch's functions and layers, their arguments, and what each becomes in the graph."""

from collections.abc import Callable, Mapping
from typing import Protocol

from kernelsmith.propose.rules.graph import Builder, NotRecognised, Shape
from kernelsmith.propose.rules.operators import Operators
from kernelsmith.propose.rules.values import Late, Tensor, Value


class Reading(Protocol):
    """What the functions below need of the reader."""

    build: Builder
    ops: Operators

    def node(self, value: Value) -> int:
        """A tensor or number as a node."""
        ...

    def check_row(self, dim: Value) -> None:
        """Insist that these dimensions are the trailing ones."""
        ...

    def check_all(self) -> None:
        """Take all dimensions for trailing ones."""
        ...

    def check_matrix(self, what: str) -> None:
        """Insist on inputs of two dimensions."""
        ...

    def product(self, text: str) -> Tensor:
        """Run a library product first, and take it as an input."""
        ...


Bound = Mapping[str, Value]
Make = Callable[[Reading, Bound], int]


class Known:
    """One function: the names of its arguments and how it is built."""

    def __init__(self, names: str, make: Make) -> None:
        self.names = names.split()
        self.make = make

    def bind(self, name: str, args: list[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
        """Give every argument its name."""
        if len(args) > len(self.names) or set(keywords) - set(self.names):
            raise NotRecognised(f"rules do not know these arguments of {name}")
        return dict(zip(self.names, args, strict=False)) | dict(keywords)


def plain(value: Value, what: str) -> float | int | bool | str | tuple[object, ...] | None:
    """A value that decides the form of the kernel, so that it must be known now."""
    known = value.known if isinstance(value, Late) else value
    if isinstance(known, bool | int | float | str | tuple) or known is None:
        return known
    raise NotRecognised(f"rules must know {what} before anything runs")


def _flag(b: Bound, name: str, default: bool = False) -> bool:
    return bool(plain(b.get(name, default), name))


def _optional(r: Reading, b: Bound, name: str) -> int | None:
    value = b.get(name)
    return None if value is None else r.node(value)


def _number(r: Reading, b: Bound, name: str, default: float) -> int:
    return r.node(b.get(name, default))


def _unary(op: str) -> Known:
    return Known("x inplace", _not_in_place(lambda r, b: r.build.unary(op, r.node(b["x"]))))


def _binary(op: str) -> Known:
    return Known("x y", lambda r, b: r.build.binary(op, r.node(b["x"]), r.node(b["y"])))


def _scaled(op: str) -> Known:
    def make(r: Reading, b: Bound) -> int:
        y = r.node(b["y"])
        if "alpha" in b:
            y = r.build.binary("mul", y, r.node(b["alpha"]))
        return r.build.binary(op, r.node(b["x"]), y)

    return Known("x y alpha", make)


def _not_in_place(make: Make) -> Make:
    def checked(r: Reading, b: Bound) -> int:
        if _flag(b, "inplace"):
            raise NotRecognised("rules do not know in-place operations")
        return make(r, b)

    return checked


def _activation(make: Make, names: str = "x inplace") -> Known:
    return Known(names, _not_in_place(make))


def _row(make: Callable[[Reading, Bound, bool], int], names: str = "x dim keepdim") -> Known:
    def checked(r: Reading, b: Bound) -> int:
        if b.get("dtype") is not None:
            raise NotRecognised("rules do not know reductions in another dtype")
        r.check_row(b.get("dim"))
        return make(r, b, _flag(b, "keepdim"))

    return Known(names, checked)


def _reduction(op: str) -> Known:
    def make(r: Reading, b: Bound) -> int:
        x = r.node(b["x"])
        if b.get("dtype") is not None:
            raise NotRecognised("rules do not know reductions in another dtype")
        if b.get("dim") is None:
            if op == "mean":
                return r.ops.total_mean(x)
            if op == "sum":
                return r.build.total(x)
            raise NotRecognised(f"rules do not know {op} over all elements")
        r.check_row(b["dim"])
        keep = _flag(b, "keepdim")
        return r.ops.mean(x, keep=keep) if op == "mean" else r.build.reduce(op, x, keep=keep)

    return Known("x dim keepdim dtype", make)


def _variance(r: Reading, b: Bound, *, deviation: bool) -> int:
    r.check_row(b.get("dim"))
    unbiased = _flag(b, "unbiased", True)
    if "correction" in b:
        correction = plain(b["correction"], "correction")
        if correction not in (0, 1):
            raise NotRecognised(f"rules do not know a variance with correction {correction}")
        unbiased = correction == 1
    made = r.ops.variance(r.node(b["x"]), keep=_flag(b, "keepdim"), unbiased=unbiased)
    return r.build.unary("sqrt", made) if deviation else made


def _order(b: Bound, name: str = "p") -> float:
    order = plain(b.get(name, 2), "the norm's order")
    if order in ("fro", None):
        return 2.0
    if not isinstance(order, int | float):
        raise NotRecognised(f"rules do not know the norm {order!r}")
    return float(order)


def _norm(name: str) -> Known:
    def make(r: Reading, b: Bound) -> int:
        if b.get("dim") is None:
            r.check_all()
            return r.ops.norm(r.node(b["x"]), _order(b, name), keep=True)
        r.check_row(b["dim"])
        return r.ops.norm(r.node(b["x"]), _order(b, name), keep=_flag(b, "keepdim"))

    return Known(f"x {name} dim keepdim", make)


def check_norm(dotted: str, count: int, dim: object) -> None:
    """Insist that ``torch.linalg.norm`` is one of vectors: with an order it may be of matrices.

    Raises:
        NotRecognised: It is.
    """
    if dotted == "torch.linalg.norm" and count > 1 and not isinstance(dim, int):
        raise NotRecognised("rules do not know norms of matrices")


def _how(b: Bound) -> object:
    """How a loss is reduced, as torch has said it for years."""
    if any(b.get(name) is not None for name in ("size_average", "reduce")):
        raise NotRecognised("rules know losses by their reduction, not size_average or reduce")
    return plain(b.get("reduction", "mean"), "reduction")


def _loss(per_element: Callable[[Reading, int, int, Bound], int], names: str = "") -> Known:
    def make(r: Reading, b: Bound) -> int:
        made = per_element(r, r.node(b["x"]), r.node(b["y"]), b)
        if r.build.shape(made) is not Shape.FULL:
            raise NotRecognised("rules do not know a loss whose inputs broadcast")
        how = _how(b)
        if how == "none":
            return made
        if how == "mean":
            return r.ops.total_mean(made)
        if how == "sum":
            return r.build.total(made)
        if how == "batchmean":
            r.check_matrix("the reduction 'batchmean'")
            return r.build.binary("div", r.build.total(made), r.build.count("rows"))
        raise NotRecognised(f"rules do not know the reduction {how!r}")

    return Known(f"x y {names}".strip() if names else "x y reduction", make)


def _weighted(per_element: Callable[[Reading, int, int, Bound], int]) -> Callable[
    [Reading, int, int, Bound], int
]:  # fmt: skip
    def made(r: Reading, x: int, y: int, b: Bound) -> int:
        loss, weight = per_element(r, x, y, b), _optional(r, b, "weight")
        return loss if weight is None else r.build.binary("mul", loss, weight)

    return made


def _squared(r: Reading, x: int, y: int, _: Bound) -> int:
    off = r.build.binary("sub", x, y)
    return r.build.binary("mul", off, off)


def _triplet(r: Reading, b: Bound) -> int:
    if plain(b.get("p", 2.0), "p") != 2 or _flag(b, "swap"):
        raise NotRecognised("rules know the triplet loss of 2-norms without swap")
    r.check_row(-1)
    near, far = (
        r.ops.norm(
            r.build.binary(
                "add", r.build.binary("sub", r.node(b["anchor"]), r.node(b[other])),
                _number(r, b, "eps", 1e-6),
            ), 2.0, keep=True,
        )
        for other in ("positive", "negative")
    )  # fmt: skip
    apart = r.build.binary("add", r.build.binary("sub", near, far), _number(r, b, "margin", 1.0))
    made = r.ops.relu(apart)
    how = _how(b)
    if how == "mean":
        return r.ops.total_mean(made)
    if how == "sum":
        return r.build.total(made)
    return r.build.view(made, Shape.SQUEEZED)


def _layer_norm(r: Reading, b: Bound) -> int:
    shape = plain(b["shape"], "normalized_shape")
    r.check_row(tuple(range(-1, -len(shape) - 1, -1)) if isinstance(shape, tuple) else -1)
    weight, bias = _optional(r, b, "weight"), _optional(r, b, "bias")
    return r.ops.layer_norm(r.node(b["x"]), _number(r, b, "eps", 1e-5), weight, bias)


def _rms_norm(r: Reading, b: Bound) -> int:
    shape = plain(b["shape"], "normalized_shape")
    r.check_row(tuple(range(-1, -len(shape) - 1, -1)) if isinstance(shape, tuple) else -1)
    eps = _number(r, b, "eps", 1.1920928955078125e-07)
    return r.ops.rms_norm(r.node(b["x"]), eps, _optional(r, b, "weight"))


def _library(form: str, names: str) -> Known:
    def make(r: Reading, b: Bound) -> int:
        texts = {}
        for name in form.replace("{", " {").split("{")[1:]:
            argument = b.get(name.split("}")[0])
            if not isinstance(argument, Tensor) or not argument.text:
                raise NotRecognised("rules do not know a product of computed tensors")
            texts[name.split("}")[0]] = argument.text
        made = r.product(form.format(**texts)).node
        assert made is not None
        bias = _optional(r, b, "bias")
        return made if bias is None else r.build.binary("add", made, bias)

    return Known(names, make)


def _addmm(r: Reading, b: Bound) -> int:
    product = _library("torch.matmul({x}, {y})", "x y").make(r, {"x": b["x"], "y": b["y"]})
    return r.build.binary("add", product, r.node(b["added"]))


def _leaky(r: Reading, b: Bound) -> int:
    return r.ops.leaky_relu(r.node(b["x"]), _number(r, b, "slope", 0.01))


def _where(r: Reading, b: Bound) -> int:
    return r.build.select(r.node(b["condition"]), r.node(b["x"]), r.node(b["y"]))


def _hard(r: Reading, b: Bound) -> int:
    x = r.node(b["x"])
    return r.build.binary("mul", x, r.ops.hardsigmoid(x))


FUNCTIONS: dict[str, Known] = {
    **{name: _unary(name) for name in (
        "abs", "exp", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "erf", "sigmoid",
        "sin", "cos", "floor", "sign", "neg",
    )},
    "negative": _unary("neg"), "logistic": _unary("sigmoid"),
    "add": _scaled("add"), "sub": _scaled("sub"), "subtract": _scaled("sub"),
    **{name: _binary(op) for name, op in (
        ("mul", "mul"), ("multiply", "mul"), ("div", "div"), ("divide", "div"),
        ("true_divide", "div"), ("maximum", "max"), ("minimum", "min"), ("lt", "lt"), ("le", "le"),
        ("gt", "gt"), ("ge", "ge"),
    )},
    "pow": Known("x y", lambda r, b: r.ops.power(r.node(b["x"]), r.node(b["y"]))),
    "square": Known("x", lambda r, b: r.ops.power(r.node(b["x"]), r.build.constant(2.0))),
    "expm1": Known("x", lambda r, b: r.ops.expm1(r.node(b["x"]))),
    "where": Known("condition x y", _where),
    "clamp": Known("x min max", lambda r, b: r.ops.clamp(
        r.node(b["x"]), _optional(r, b, "min"), _optional(r, b, "max"))),
    "relu": _activation(lambda r, b: r.ops.relu(r.node(b["x"]))),
    "relu6": _activation(lambda r, b: r.ops.clamp(
        r.node(b["x"]), r.build.constant(0.0), r.build.constant(6.0))),
    "leaky_relu": _activation(_leaky, "x slope inplace"),
    "elu": _activation(lambda r, b: r.ops.elu(
        r.node(b["x"]), _number(r, b, "alpha", 1.0)), "x alpha inplace"),
    "selu": _activation(lambda r, b: r.ops.elu(
        r.node(b["x"]), r.build.constant(1.6732632423543772),
        r.build.constant(1.0507009873554805))),
    "silu": _activation(lambda r, b: r.ops.silu(r.node(b["x"]))),
    "gelu": Known("x approximate", lambda r, b: r.ops.gelu(
        r.node(b["x"]), str(plain(b.get("approximate", "none"), "approximate")))),
    "softplus": Known("x beta threshold", lambda r, b: r.ops.softplus(
        r.node(b["x"]), _optional(r, b, "beta"), _optional(r, b, "threshold"))),
    "softsign": Known("x", lambda r, b: r.build.binary("div", r.node(b["x"]), r.build.binary(
        "add", r.build.unary("abs", r.node(b["x"])), r.build.constant(1.0)))),
    "logsigmoid": Known("x", lambda r, b: r.build.unary("neg", r.ops.softplus(
        r.build.unary("neg", r.node(b["x"]))))),
    "mish": _activation(lambda r, b: r.ops.mish(r.node(b["x"]))),
    "hardsigmoid": _activation(lambda r, b: r.ops.hardsigmoid(r.node(b["x"]))),
    "hardswish": _activation(_hard),
    "hardtanh": _activation(lambda r, b: r.ops.clamp(
        r.node(b["x"]), _number(r, b, "min_val", -1.0), _number(r, b, "max_val", 1.0)),
        "x min_val max_val inplace"),
    "sum": _reduction("sum"), "mean": _reduction("mean"),
    "amax": _reduction("max"), "amin": _reduction("min"),
    "var": Known("x dim unbiased keepdim correction",
                 lambda r, b: _variance(r, b, deviation=False)),
    "std": Known("x dim unbiased keepdim correction",
                 lambda r, b: _variance(r, b, deviation=True)),
    "logsumexp": _row(lambda r, b, keep: r.ops.logsumexp(r.node(b["x"]), keep=keep)),
    "norm": _norm("p"), "vector_norm": _norm("ord"),
    "softmax": _row(lambda r, b, _: r.ops.softmax(r.node(b["x"])), "x dim _stacklevel dtype"),
    "log_softmax": _row(lambda r, b, _: r.ops.log_softmax(r.node(b["x"])),
                        "x dim _stacklevel dtype"),
    "normalize": _row(lambda r, b, _: r.ops.normalize(
        r.node(b["x"]), _order(b), _number(r, b, "eps", 1e-12)), "x p dim eps"),
    "cosine_similarity": _row(lambda r, b, _: r.ops.cosine_similarity(
        r.node(b["x"]), r.node(b["y"]), _number(r, b, "eps", 1e-8)), "x y dim eps"),
    "layer_norm": Known("x shape weight bias eps", _layer_norm),
    "rms_norm": Known("x shape weight eps", _rms_norm),
    "mse_loss": _loss(_squared, "size_average reduce reduction"),
    "l1_loss": _loss(lambda r, x, y, _: r.build.unary("abs", r.build.binary("sub", x, y)),
                     "size_average reduce reduction"),
    "smooth_l1_loss": _loss(lambda r, x, y, b: r.ops.smooth_l1(
        x, y, _number(r, b, "beta", 1.0)), "size_average reduce reduction beta"),
    "huber_loss": _loss(lambda r, x, y, b: r.ops.huber(
        x, y, _number(r, b, "delta", 1.0)), "reduction delta"),
    "kl_div": _loss(lambda r, x, y, b: r.ops.kl_div(
        x, y, log_target=_flag(b, "log_target")), "size_average reduce reduction log_target"),
    "binary_cross_entropy": _loss(_weighted(lambda r, x, y, _: r.ops.cross(x, y)),
                                  "weight size_average reduce reduction"),
    "binary_cross_entropy_with_logits": _loss(
        _weighted(lambda r, x, y, b: r.ops.cross_of_logits(x, y, _optional(r, b, "pos_weight"))),
        "weight size_average reduce reduction pos_weight"),
    "triplet_margin_loss": Known(
        "anchor positive negative margin p eps swap size_average reduce reduction", _triplet),
    "linear": _library("torch.nn.functional.linear({x}, {weight})", "x weight bias"),
    **{name: _library("torch.matmul({x}, {y})", "x y") for name in ("matmul", "mm", "bmm")},
    "addmm": Known("added x y", _addmm),
    "contiguous": Known("x", lambda r, b: r.node(b["x"])),
}  # fmt: skip
FUNCTIONS["swish"] = FUNCTIONS["silu"]
FUNCTIONS["clip"] = FUNCTIONS["clamp"]

LAYERS: dict[str, tuple[str, str]] = {
    "ReLU": ("relu", "inplace"), "ReLU6": ("relu6", "inplace"), "SiLU": ("silu", "inplace"),
    "GELU": ("gelu", "approximate"), "Tanh": ("tanh", ""), "Sigmoid": ("sigmoid", ""),
    "Softplus": ("softplus", "beta threshold"), "Softsign": ("softsign", ""),
    "LeakyReLU": ("leaky_relu", "slope inplace"), "ELU": ("elu", "alpha inplace"),
    "SELU": ("selu", "inplace"), "Mish": ("mish", "inplace"), "LogSigmoid": ("logsigmoid", ""),
    "Hardtanh": ("hardtanh", "min_val max_val inplace"), "Hardswish": ("hardswish", "inplace"),
    "Hardsigmoid": ("hardsigmoid", "inplace"), "Softmax": ("softmax", "dim"),
    "LogSoftmax": ("log_softmax", "dim"), "MSELoss": ("mse_loss", "size_average reduce reduction"),
    "L1Loss": ("l1_loss", "size_average reduce reduction"),
    "SmoothL1Loss": ("smooth_l1_loss", "size_average reduce reduction beta"),
    "HuberLoss": ("huber_loss", "reduction delta"),
    "KLDivLoss": ("kl_div", "size_average reduce reduction log_target"),
    "BCELoss": ("binary_cross_entropy", "weight size_average reduce reduction"),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits",
                          "weight size_average reduce reduction pos_weight"),
    "CosineSimilarity": ("cosine_similarity", "dim eps"),
    "TripletMarginLoss": ("triplet_margin_loss", "margin p eps swap size_average reduce reduction"),
}  # fmt: skip
"""Layers without weights: the function they call, and the names of their settings."""

RENAMED = {
    "negative_slope": "slope", "other": "y", "input": "x", "self": "x", "exponent": "y",
    "target": "y", "normalized_shape": "shape", "mat2": "y", "x1": "x", "x2": "y", "axis": "dim",
    "keepdims": "keepdim",
}  # fmt: skip
"""Torch's keyword names where ours differ."""
