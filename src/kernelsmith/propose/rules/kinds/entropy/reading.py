"""Which loss of rows against classes a task computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of

_NAMES = "x y weight size_average ignore_index reduce reduction label_smoothing"
_NOBODY = -(2**40)
"""A class that no row has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy:
    """``-picked * z[class] - average * mean(z)`` of each row; ``z`` is its log-softmax, or it."""

    logits: str
    targets: str
    reduction: str
    picked: float = 1.0
    average: float = 0.0
    normalised: bool = True
    """Whether the rows are logits; else they are logarithms of probabilities already."""
    ignored: int = _NOBODY
    """Rows of this class do not count."""

    @property
    def scale(self) -> float:
        """How often the logarithm of the sum counts."""
        return self.picked + self.average

    @property
    def ignores(self) -> bool:
        """Whether there may be rows that do not count."""
        return self.ignored != _NOBODY

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        x, y = self.logits, self.targets
        return (f"{x}.dtype in {dtypes}", f"{y}.dtype is torch.int64", f"{x}.dim() == 2",
                f"{y}.shape == {x}.shape[:1]", f"{x}.numel() > 0")  # fmt: skip

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x, y = self.logits, self.targets
        return [f"{x} = {x}.contiguous()", f"{y} = {y}.contiguous()", f"rows, dim = {x}.shape",
                f"out = {x}.new_empty({'rows' if self.reduction == 'none' else '()'})"]  # fmt: skip


def read(traced: Traced) -> Entropy:
    """The loss that a task returns.

    Raises:
        NotRecognised: It is something else.
    """
    found = traced.result
    if not isinstance(found, Expr):
        raise NotRecognised("rules find no cross entropy")
    given = dict(found.settings)
    kind = given.get("kind") if found.op == "layer" else found.op
    if kind in ("CrossEntropyLoss", "NLLLoss"):
        given |= dict(zip(("x", "y"), found.args, strict=False))
    elif kind in ("cross_entropy", "nll_loss"):
        given |= dict(zip(_NAMES.split(), found.args, strict=False))
    else:
        return _written_out(found)
    return _called(given, logs=kind in ("nll_loss", "NLLLoss"))


def _called(given: dict[str, Value], *, logs: bool) -> Entropy:
    x, y = given.get("x"), given.get("y")
    normalised = not logs
    if logs and isinstance(x, Expr) and x.op in ("log_softmax", "layer"):
        x, normalised = _logits(x), True
    logits, targets = _pair(x, y)
    known = {"kind", "x", "y", "ignore_index", "reduction", "label_smoothing"}
    if not {name for name, value in given.items() if value is not None} <= known:
        raise NotRecognised("rules do not know weights in a cross entropy")
    ignored = plain_of(given.get("ignore_index", -100))
    reduction = plain_of(given.get("reduction", "mean"))
    smooth = plain_of(given.get("label_smoothing", 0.0))
    if not isinstance(ignored, int) or reduction not in ("mean", "sum", "none"):
        raise NotRecognised("rules do not know this reduction of a cross entropy")
    if not isinstance(smooth, int | float) or not 0 <= smooth <= 1 or (logs and smooth):
        raise NotRecognised("rules know smoothing between 0 and 1")
    return Entropy(
        logits=logits, targets=targets, ignored=ignored, reduction=str(reduction),
        normalised=normalised, picked=1.0 - float(smooth), average=float(smooth),
    )  # fmt: skip


def _pair(x: Value, y: Value) -> tuple[str, str]:
    if not (isinstance(x, Expr) and isinstance(y, Expr) and x.op == y.op == "input"):
        raise NotRecognised("rules know the cross entropy of two inputs")
    if x.rank != 2 or y.rank != 1 or not y.integer or x.integer:
        raise NotRecognised("rules know the cross entropy of a matrix and the numbers of classes")
    return x.text, y.text


def _logits(expr: Expr) -> Value:
    """What the logarithms of a row's softmax are taken of."""
    if expr.op == "layer" and expr.setting("kind") != "LogSoftmax":
        raise NotRecognised("rules find no cross entropy")
    names = ("x",) if expr.op == "layer" else ("x", "dim", "_stacklevel", "dtype")
    given = dict(zip(names, expr.args, strict=False)) | dict(expr.settings)
    if plain_of(given.get("dim")) not in (1, -1) or given.get("dtype") is not None:
        raise NotRecognised("rules know the softmax of rows")
    return given.get("x")


@dataclass(frozen=True, slots=True)
class _Linear:
    """``picked * z[class] + average * mean(z)`` of each row, added up or not."""

    picked: float
    average: float
    rows: Expr
    targets: Expr | None
    reduction: str = "none"

    def times(self, by: float) -> "_Linear":
        return _Linear(self.picked * by, self.average * by, self.rows, self.targets, self.reduction)

    def plus(self, other: "_Linear") -> "_Linear":
        named = {self.targets, other.targets} - {None}
        if (self.rows, self.reduction) != (other.rows, other.reduction) or len(named) > 1:
            raise NotRecognised("rules find no cross entropy")
        return _Linear(
            self.picked + other.picked, self.average + other.average, self.rows,
            self.targets or other.targets, self.reduction,
        )  # fmt: skip


def _written_out(expr: Expr) -> Entropy:
    """A weighted sum of what is picked and of means of log-softmax."""
    found = _linear(expr)
    if found.targets is None or found.picked == 0:
        raise NotRecognised("rules find no cross entropy")
    logits, targets = _pair(_logits(found.rows), found.targets)
    return Entropy(
        logits=logits, targets=targets, reduction=found.reduction, picked=-found.picked,
        average=-found.average,
    )  # fmt: skip


def _linear(expr: Value) -> _Linear:
    if not isinstance(expr, Expr):
        raise NotRecognised("rules find no cross entropy")
    args, dim = expr.args, expr.setting("dim", expr.args[1] if len(expr.args) > 1 else None)
    match expr.op:
        case "neg" | "negative":
            return _linear(args[0]).times(-1.0)
        case "add" | "sub" if not expr.settings:
            return _linear(args[0]).plus(_linear(args[1]).times(1.0 if expr.op == "add" else -1.0))
        case "mul" if not expr.settings:
            a, b = (args[1], args[0]) if _is_number(args[0]) else args
            return _linear(a).times(_number(b))
        case "div" if not expr.settings:
            return _linear(args[0]).times(1.0 / _number(args[1]))
        case "mean" | "sum" if len(args) == 1 and not expr.settings:
            inner = _linear(args[0])
            if inner.reduction != "none":
                raise NotRecognised("rules find no cross entropy")
            return _Linear(inner.picked, inner.average, inner.rows, inner.targets, expr.op)
        case "mean" if isinstance(args[0], Expr) and plain_of(dim) in (1, -1):
            if plain_of(expr.setting("keepdim", args[2] if len(args) > 2 else None)):
                raise NotRecognised("rules find no cross entropy")
            return _Linear(0.0, 1.0, args[0], None)
        case "squeeze" if plain_of(dim) in (1, -1):
            return _picked(args[0])
    raise NotRecognised("rules find no cross entropy")


def _picked(expr: Value) -> _Linear:
    """``z.gather(1, classes.unsqueeze(1))``."""
    if isinstance(expr, Expr) and expr.op == "gather":
        given = dict(zip(("x", "dim", "index"), expr.args, strict=False)) | dict(expr.settings)
        rows, index = given.get("x"), given.get("index")
        if isinstance(rows, Expr) and isinstance(index, Expr) and plain_of(given["dim"]) in (1, -1):
            return _Linear(1.0, 0.0, rows, _unsqueezed(index))
    raise NotRecognised("rules find no cross entropy")


def _unsqueezed(index: Expr) -> Expr:
    inner = index.args[0] if index.args else None
    if isinstance(inner, Expr):
        if index.op == "unsqueeze":
            dim = index.setting("dim", index.args[1] if len(index.args) > 1 else None)
            if plain_of(dim) in (1, -1):
                return inner
        if index.op == "index" and index.args[1:] in ((":", None), ("...", None)):
            return inner
    raise NotRecognised("rules find no cross entropy")


def _is_number(value: Value) -> bool:
    return not isinstance(value, Expr) or value.op == "number"


def _number(value: Value) -> float:
    known = plain_of(value) if _is_number(value) else None
    if not isinstance(known, int | float) or isinstance(known, bool) or known == 0:
        raise NotRecognised("rules must know the weights of a loss before anything runs")
    return float(known)
