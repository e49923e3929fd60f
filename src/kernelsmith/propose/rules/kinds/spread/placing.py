"""From an expression to the elements that it reads: views are followed down to the leaves."""

from collections.abc import Sequence
from dataclasses import replace

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.spread.graph import Coordinate, Leaf
from kernelsmith.propose.rules.kinds.spread.shapes import (
    REDUCTIONS,
    SAME,
    SCATTERS,
    ZEROS,
    Shapes,
    embedded,
    given,
    integers,
    is_elementwise,
    operands,
    tensor,
)
from kernelsmith.propose.rules.kinds.trace import Expr, Value, plain_of

Axes = tuple[tuple[int, ...], ...]
"""What runs along each dimension of an expression: as many axes as its size has factors."""


class Placing:
    """Collects leaves; an expression becomes one over places, without views."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.leaves: list[Leaf] = []
        self.reduction = ""
        self.reduced: tuple[int, ...] = ()
        self.inner: Expr | None = None
        """What is reduced, over places."""
        self.order: tuple[int, ...] = ()
        """Its axes in order."""
        self.scattered: Expr | None = None
        """What is added up by number, if anything is."""
        self._count = 0
        self._known: dict[tuple[Expr, Axes], Expr] = {}

    def fresh(self, form: Sequence[Sequence[str]]) -> Axes:
        """New axes for a form."""
        made = []
        for dim in form:
            made.append(tuple(range(self._count, self._count + len(dim))))
            self._count += len(dim)
        return tuple(made)

    def placed(self, expr: Expr, axes: Axes) -> Expr:
        """The expression at every place of these axes."""
        if (expr, axes) not in self._known:
            self._known[expr, axes] = self._placed(expr, axes)
        return self._known[expr, axes]

    def _placed(self, expr: Expr, axes: Axes) -> Expr:
        match expr.op:
            case "input" | "parameter":
                if expr.integer:
                    raise NotRecognised("rules know integer inputs as indices alone")
                return self._place(Leaf(expr.text, _straight(axes)))
            case "tiled":
                return self._place(_tiles(expr, _straight(axes)))
            case "gather" | "take_along_dim" | "index_select" | "embedding":
                return self._picked(expr, axes)
            case "index" if any(isinstance(each, Expr) for each in expr.args[1:]):
                return self._picked(expr, axes)
        moved = self._moved(expr, axes)
        if moved is not None:
            return self.placed(*moved)
        if expr.op in SCATTERS:
            return self._added(expr, axes)
        if expr.op in REDUCTIONS:
            return self._reduced(expr, axes)
        if not is_elementwise(expr):
            raise NotRecognised(f"rules do not know {expr.setting('kind') or expr.op} here")
        settings = tuple((name, self._operand(value, axes)) for name, value in expr.settings)
        return replace(expr, args=tuple(self._operand(a, axes) for a in expr.args),
                       settings=settings)  # fmt: skip

    def _operand(self, value: Value, axes: Axes) -> Value:
        if not isinstance(value, Expr) or value.op == "number":
            return value
        return self.placed(value, self._aligned(value, axes))

    def _aligned(self, expr: Expr, axes: Axes) -> Axes:
        """The axes of an operand that broadcasts."""
        form = self.shapes.of(expr)
        behind = axes[len(axes) - len(form) :]
        return tuple(a if dim else () for dim, a in zip(form, behind, strict=True))

    def _moved(self, expr: Expr, axes: Axes) -> tuple[Expr, Axes] | None:
        """The argument of a view, with its axes; none where the expression is no view."""
        match expr.op:
            case "unsqueeze":
                x = tensor(given(expr, "x dim")["x"])
                at = self.shapes.axis(x, given(expr, "x dim")["dim"], more=1)
                return x, (*axes[:at], *axes[at + 1 :])
            case "squeeze":
                x = tensor(given(expr, "x dim")["x"])
                at = self.shapes.axis(x, given(expr, "x dim").get("dim"))
                return x, (*axes[:at], (), *axes[at:])
            case "T" | "mT" | "t" | "transpose" | "permute":
                order = self.shapes.order(expr)
                return tensor(expr.args[0]), tuple(axes[order.index(i)] for i in range(len(order)))
            case "view" | "reshape":
                x = tensor(expr.args[0])
                (along,) = [each for each in axes if each] or [()]
                return x, tuple(along if dim else () for dim in self.shapes.of(x))
            case "expand" | "expand_as":
                x = tensor(expr.args[0])
                return x, self._aligned(x, axes)
            case "flatten":
                x, first, last = self.shapes.flattened(expr)
                parts, rest = [], axes[first]
                for dim in self.shapes.of(x)[first : last + 1]:
                    parts.append(rest[: len(dim)])
                    rest = rest[len(dim) :]
                return x, (*axes[:first], *parts, *axes[first + 1 :])
            case "index":
                _, items, _ = self.shapes.indexed(expr)
                kept = [a for a, item in zip(axes, items, strict=True) if item == ":"]
                return tensor(expr.args[0]), tuple(kept)
        if expr.op in SAME:
            return tensor(expr.args[0]), axes
        return None

    def _picked(self, expr: Expr, axes: Axes) -> Expr:
        """A tensor read at numbers that another tensor holds."""
        table, coordinates = self.table(expr, axes)
        if table.op not in ("input", "parameter") or table.integer:
            raise NotRecognised("rules know look-ups in inputs and parameters")
        return self._place(Leaf(table.text, coordinates))

    def table(self, expr: Expr, axes: Axes) -> tuple[Expr, tuple[Coordinate, ...]]:
        """What is looked up in, and where."""
        if expr.op == "embedding":
            ids, found = embedded(expr)
            n = len(self.shapes.of(ids))
            return found, (self.at(ids, axes[:n]), *_straight(axes[n:]))
        if expr.op == "index":
            return self._bracketed(expr, axes)
        names = "x indices dim" if expr.op == "take_along_dim" else "x dim index"
        b = given(expr, names)
        x, index = tensor(b["x"]), tensor(b.get("index", b.get("indices")))
        at = self.shapes.axis(x, b["dim"])
        if len(axes) != len(self.shapes.of(x)):
            raise NotRecognised("rules know gather of equal ranks")
        if expr.op == "index_select":
            number = self.at(index, axes[at : at + 1])
            return x, (*_straight(axes[:at]), number, *_straight(axes[at + 1 :]))
        number = self.at(index, self._aligned(index, axes))
        made = [*_straight(axes)]
        for i, dim in enumerate(self.shapes.of(x)):
            made[i] = number if i == at else made[i] if dim else Coordinate()
        return x, tuple(made)

    def _bracketed(self, expr: Expr, axes: Axes) -> tuple[Expr, tuple[Coordinate, ...]]:
        _, items, wide = self.shapes.indexed(expr)
        made: list[Coordinate] = []
        rest = list(axes)
        picked: Axes | None = None
        for item in items:
            if item is None:
                del rest[0]
            elif isinstance(item, Expr):
                if picked is None:
                    picked = tuple(rest[:wide])
                    del rest[:wide]
                made.append(self.at(item, self._aligned(item, picked), wraps=True))
            else:
                made += _straight((rest.pop(0),))
        return tensor(expr.args[0]), tuple(made)

    def at(self, index: Expr, axes: Axes, *, wraps: bool = False) -> Coordinate:
        """The coordinate that a tensor of numbers gives."""
        while index.op not in ("input", "parameter"):
            moved = self._moved(index, axes)
            if moved is None:
                raise NotRecognised("rules know indices that are inputs")
            index, axes = moved
        if not index.integer:
            raise NotRecognised("rules know indices that are inputs")
        place = self._place(Leaf(index.text, _straight(axes), True))
        return Coordinate(index=int(place.text), wraps=wraps)

    def _added(self, expr: Expr, axes: Axes) -> Expr:
        """What is added up by number lies in a buffer when the rest is computed."""
        if self.scattered not in (None, expr):
            raise NotRecognised("rules know one scatter at a time")
        self.scattered = expr
        base = tensor(expr.args[0])
        sums = self._place(Leaf("held", _straight(axes), sizes=self.shapes.sizes(base)))
        return sums if base.op in ZEROS else Expr("add", (self.placed(base, axes), sums))

    def _reduced(self, expr: Expr, axes: Axes) -> Expr:
        b = given(expr, "x dim keepdim")
        if "dim" not in b or self.reduction:
            raise NotRecognised("rules know one reduction over some dimensions here")
        x = tensor(b["x"])
        gone = self.shapes.axes(x, b["dim"])
        keep = bool(plain_of(b.get("keepdim", False)))
        rest = [a for i, a in enumerate(axes) if not (keep and i in gone)]
        inner: list[tuple[int, ...]] = []
        for i, dim in enumerate(self.shapes.of(x)):
            inner.append(self.fresh([dim])[0] if i in gone else rest.pop(0))
        self.reduction = REDUCTIONS[expr.op]
        self.reduced = tuple(a for i in gone for a in inner[i])
        self.order = tuple(a for each in inner for a in each)
        self.inner = self.placed(x, tuple(inner))
        return Expr("place", text="<reduced>")

    def _place(self, leaf: Leaf) -> Expr:
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        return Expr("place", text=str(self.leaves.index(leaf)))


def _straight(axes: Axes) -> tuple[Coordinate, ...]:
    if any(len(each) > 1 for each in axes):
        raise NotRecognised("rules do not know a flattened dimension that a tensor has as one")
    return tuple(Coordinate(axis=each[0]) if each else Coordinate() for each in axes)


def _tiles(expr: Expr, coordinates: tuple[Coordinate, ...]) -> Leaf:
    """An input whose last dimensions are cut in equal parts; as it is where they cannot be."""
    x, sizes = tensor(expr.args[0]).text, integers(expr.args[1])
    name = "_".join(["tiled", x, *map(str, sizes)])
    view, cut = x, []
    for i, size in reversed([*enumerate(sizes, 2)]):
        view += f".unflatten({i}, ({size}, -1))"
        cut.append(f"{x}.shape[{i}] % {size} == 0")
    can = " and ".join([f"{x}.dim() == {len(sizes) + 2}", f"{x}.numel() > 0", *cut])
    return Leaf(name, coordinates, view=f"{view} if {can} else {x}")


def is_ordered(expr: Expr) -> bool:
    """Whether torch lays the value out row by row: transposed ones pass their order on."""
    if expr.op in ("input", "parameter", "number", "place", "tiled"):
        return True
    if expr.op in ("contiguous", "gather", "take_along_dim", "index_select", "embedding"):
        return True
    if expr.op in ("T", "mT", "t", "transpose", "permute"):
        return False
    return all(is_ordered(each) for each in operands(expr))
