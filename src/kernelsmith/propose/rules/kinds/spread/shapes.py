"""The shape of every traced expression, by what the source says about the inputs."""

import ast

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.functions import FUNCTIONS, LAYERS
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.trace import Expr, Value, plain_of
from kernelsmith.propose.rules.source import Module

Dim = tuple[str, ...]
"""Sizes as written whose product a dimension is; none for a dimension of one element."""
Form = tuple[Dim, ...]

REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min"}
SCATTERS = {"index_add": "x dim index source alpha", "scatter_add": "x dim index src"}
ZEROS = ("zeros", "new_zeros", "zeros_like")
_VIEWS = ("T", "mT", "t", "transpose", "permute")
SAME = ("contiguous", "clone")
"""Functions that leave values and places as they are."""


def given(expr: Expr, names: str) -> dict[str, Value]:
    """Arguments by name."""
    listed = names.split()
    if len(expr.args) > len(listed) or not {k for k, _ in expr.settings} <= set(listed):
        raise NotRecognised(f"rules do not know these arguments of {expr.op}")
    return dict(zip(listed, expr.args, strict=False)) | dict(expr.settings)


def tensor(value: Value) -> Expr:
    """A value that must be a tensor."""
    if not isinstance(value, Expr) or value.op == "number":
        raise NotRecognised(f"rules do not know what {value!r} is here")
    return value


def integers(value: Value) -> list[int]:
    """One whole number or several, known now."""
    known = plain_of(value)
    listed = known if isinstance(known, tuple) else (known,)
    found = [each for each in listed if type(each) is int]
    if len(found) != len(listed):
        raise NotRecognised("rules must know these dimensions before anything runs")
    return found


def broadcast(forms: list[Form]) -> Form:
    """The form of an elementwise result; sizes are compared at call time."""
    rank = max((len(each) for each in forms), default=0)
    made: list[Dim] = []
    for place in range(-rank, 0):
        dims = [each[place] for each in forms if len(each) >= -place and each[place]]
        if len({len(each) for each in dims}) > 1:
            raise NotRecognised("rules do not know how flattened dimensions broadcast")
        made.append(dims[0] if dims else ())
    return tuple(made)


class Shapes:
    """Finds shapes from the leaves up; each expression once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[Expr, Form] = {}

    @property
    def task(self) -> Task:
        """Whose shapes they are."""
        return self._module.task

    def of(self, expr: Expr) -> Form:
        """The dimensions of an expression.

        Raises:
            NotRecognised: They cannot be told.
        """
        if expr not in self._known:
            self._known[expr] = self._found(expr)
        return self._known[expr]

    def axis(self, expr: Expr, dim: Value, more: int = 0) -> int:
        """A dimension, counted from the front."""
        rank = len(self.of(expr)) + more
        (number,) = integers(dim)
        if not -rank <= number < rank:
            raise NotRecognised(f"there is no dimension {number} of {rank}")
        return number % rank

    def axes(self, expr: Expr, dims: Value) -> list[int]:
        """Several dimensions, counted from the front, in order."""
        return sorted({self.axis(expr, each) for each in integers(dims)})

    def _found(self, expr: Expr) -> Form:
        match expr.op:
            case "input" | "parameter":
                return self._leaf(expr)
            case "tiled":
                x, sizes = tensor(expr.args[0]), integers(expr.args[1])
                behind: list[Dim] = []
                for dim, size in zip(self.of(x)[2:], sizes, strict=True):
                    behind += [() if size == 1 else (str(size),), (f"{dim}/{size}",)]
                return (*self.of(x)[:2], *behind)
            case "unsqueeze":
                b = given(expr, "x dim")
                x = tensor(b["x"])
                form, at = self.of(x), self.axis(x, b["dim"], more=1)
                return (*form[:at], (), *form[at:])
            case "squeeze":
                b = given(expr, "x dim")
                x = tensor(b["x"])
                at = self.axis(x, b.get("dim"))
                if self.of(x)[at]:
                    raise NotRecognised("rules know squeeze of a dimension of one element")
                return (*self.of(x)[:at], *self.of(x)[at + 1 :])
            case "index":
                return self.indexed(expr)[0]
            case "view" | "reshape":
                return self._viewed(expr)
            case "expand" | "expand_as":
                return self._expanded(expr)
            case "flatten":
                x, first, last = self.flattened(expr)
                form = self.of(x)
                joined = tuple(size for dim in form[first : last + 1] for size in dim)
                return (*form[:first], joined, *form[last + 1 :])
        if expr.op in _VIEWS:
            return tuple(self.of(tensor(expr.args[0]))[at] for at in self.order(expr))
        return self._computed(expr)

    def _computed(self, expr: Expr) -> Form:
        match expr.op:
            case "gather":
                return self.of(tensor(given(expr, "x dim index")["index"]))
            case "take_along_dim":
                b = given(expr, "x indices dim")
                x, index = tensor(b["x"]), tensor(b["indices"])
                at, form = self.axis(x, b.get("dim")), list(self.of(x))
                if len(self.of(index)) != len(form):
                    raise NotRecognised("rules know take_along_dim of equal ranks")
                form[at] = ()
                return broadcast([tuple(form), self.of(index)])
            case "index_select":
                b = given(expr, "x dim index")
                x = tensor(b["x"])
                at, form = self.axis(x, b["dim"]), list(self.of(x))
                form[at] = self._one(self.of(tensor(b["index"])))
                return tuple(form)
            case "embedding":
                ids, table = embedded(expr)
                return (*self.of(ids), *self.of(table)[1:])
        if expr.op in REDUCTIONS and "dim" in (b := given(expr, "x dim keepdim")):
            x = tensor(b["x"])
            gone = self.axes(x, b["dim"])
            keep = bool(plain_of(b.get("keepdim", False)))
            return tuple(
                () if i in gone else dim
                for i, dim in enumerate(self.of(x))
                if keep or i not in gone
            )
        if expr.op in SCATTERS:
            return self.of(tensor(expr.args[0]))
        if expr.op in ZEROS:
            return self._empty(expr)
        if expr.op in SAME or is_elementwise(expr):
            return broadcast([self.of(each) for each in operands(expr)])
        raise NotRecognised(f"rules do not know {expr.setting('kind') or expr.op} here")

    def _leaf(self, expr: Expr) -> Form:
        if expr.dims is None:
            raise NotRecognised(f"rules cannot tell the shape of {expr.text}")
        return tuple(() if self._is_one(expr, each) else (each,) for each in expr.dims)

    def _is_one(self, expr: Expr, written: str) -> bool:
        if expr.op == "input":
            return self._module.same_sizes((written,), ("1",))
        try:
            return self._module.plain(ast.parse(written, mode="eval").body) == 1
        except NotRecognised:
            return False

    def order(self, expr: Expr) -> list[int]:
        """Which dimension of its argument each dimension of a transposed tensor is."""
        x = tensor(expr.args[0])
        rank = len(self.of(x))
        order = list(range(rank))
        if expr.op == "permute":
            listed = expr.args[1:] or (expr.setting("dims"),)
            dims = integers(listed[0] if len(listed) == 1 else tuple(listed))
            order = [self.axis(x, each) for each in dims]
        elif expr.op == "transpose":
            b = given(expr, "x dim0 dim1")
            a, c = self.axis(x, b["dim0"]), self.axis(x, b["dim1"])
            order[a], order[c] = c, a
        elif expr.op == "mT" or rank == 2:
            if rank < 2:
                raise NotRecognised("rules know transposed matrices")
            order[-1], order[-2] = rank - 2, rank - 1
        else:
            raise NotRecognised("rules know transposed matrices")
        if sorted(order) != list(range(rank)):
            raise NotRecognised("rules do not know this order of dimensions")
        return order

    def flattened(self, expr: Expr) -> tuple[Expr, int, int]:
        """What is flattened, from which dimension to which."""
        b = given(expr, "x start_dim end_dim")
        x = tensor(b["x"])
        first, last = self.axis(x, b.get("start_dim", 0)), self.axis(x, b.get("end_dim", -1))
        if first > last:
            raise NotRecognised("rules do not know flatten backwards")
        return x, first, last

    def indexed(self, expr: Expr) -> tuple[Form, list[Value], int]:
        """``x[...]``: its form, what stands for each dimension, and how far the indices reach.

        Every item is ``None`` (a new dimension), ``":"`` or a tensor of numbers; tensors stand
        side by side, their common form takes the place of the first.
        """
        x, items = tensor(expr.args[0]), list(expr.args[1:])
        form = self.of(x)
        used = sum(each is not None and each != "..." for each in items)
        if used > len(form) or items.count("...") > 1:
            raise NotRecognised("rules do not know so many indices")
        if "..." not in items:
            items.append("...")
        at = items.index("...")
        items[at : at + 1] = [":"] * (len(form) - used)
        numbers = [i for i, each in enumerate(items) if isinstance(each, Expr)]
        if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
            raise NotRecognised("rules know indices that stand side by side")
        picked = broadcast([self.of(tensor(items[i])) for i in numbers])
        made: list[Dim] = []
        dims = iter(form)
        for i, each in enumerate(items):
            if each is None:
                made.append(())
                continue
            dim = next(dims)
            if each == ":":
                made.append(dim)
            elif i == numbers[0]:
                made += picked
        return tuple(made), items, len(picked)

    def _viewed(self, expr: Expr) -> Form:
        """Ones put around a single dimension."""
        x = tensor(expr.args[0])
        listed = expr.args[1:]
        sizes = listed[0] if len(listed) == 1 and isinstance(listed[0], tuple) else listed
        dims = [dim for dim in self.of(x) if dim]
        made = [() if each == 1 else dims[0] if len(dims) == 1 else None for each in sizes]
        if len(dims) != 1 or sum(each != () for each in made) != 1 or expr.settings:
            raise NotRecognised("rules know views that put ones around a dimension")
        return tuple(each for each in made if each is not None)

    def _expanded(self, expr: Expr) -> Form:
        x = tensor(expr.args[0])
        form = self.of(x)
        if expr.op == "expand_as":
            wanted = self.of(tensor(given(expr, "x y")["y"]))
        else:
            listed = expr.args[1:]
            sizes = listed[0] if len(listed) == 1 and isinstance(listed[0], tuple) else listed
            skipped = len(sizes) - len(form)
            if skipped < 0 or expr.settings:
                raise NotRecognised("rules do not know this expand")
            padded = ((),) * skipped + form
            wanted = tuple(
                old if each == -1 else self.size(each)
                for old, each in zip(padded, sizes, strict=True)
            )
        return broadcast([form, wanted])

    def _empty(self, expr: Expr) -> Form:
        if expr.op == "zeros_like":
            return self.of(tensor(expr.args[0]))
        listed = expr.args[expr.op == "new_zeros" :]
        sizes = listed[0] if len(listed) == 1 and isinstance(listed[0], tuple) else listed
        return tuple(self.size(each) for each in sizes)

    def size(self, value: Value) -> Dim:
        """A size written in ``forward``."""
        if isinstance(value, int) and not isinstance(value, bool):
            return () if value == 1 else (str(value),)
        if isinstance(value, Expr):
            if value.op == "number":
                return () if value.known == 1 else (value.text,)
            x, at = sized(value)
            return self.of(x)[self.axis(x, at)]
        raise NotRecognised(f"rules do not know the size {value!r}")

    def sizes(self, base: Expr) -> tuple[str, ...]:
        """The sizes of what something is added to, in Python."""
        if base.op in ("input", "parameter"):
            return tuple(f"{base.text}.shape[{i}]" for i in range(len(self.of(base))))
        if base.op == "zeros_like":
            return self.sizes(tensor(base.args[0]))
        if base.op not in ZEROS:
            raise NotRecognised("rules know a scatter onto zeros or an input")
        listed = base.args[base.op == "new_zeros" :]
        held = listed[0] if len(listed) == 1 and isinstance(listed[0], tuple) else listed
        return tuple(self._size_text(each) for each in held)

    def _size_text(self, value: Value) -> str:
        if isinstance(value, int):
            return str(value)
        if isinstance(value, Expr) and value.op == "number":
            return value.text
        x, at = sized(tensor(value))
        if x.op not in ("input", "parameter"):
            raise NotRecognised("rules know sizes of inputs here")
        return f"{x.text}.shape[{self.axis(x, at)}]"

    def _one(self, form: Form) -> Dim:
        if len(form) != 1:
            raise NotRecognised("rules know index_select by one list of numbers")
        return form[0]


def sized(value: Expr) -> tuple[Expr, Value]:
    """Of ``x.shape[i]`` and ``x.size(i)``: tensor and dimension."""
    if value.op == "item" and isinstance(value.args[0], Expr) and value.args[0].op == "shape":
        return tensor(value.args[0].args[0]), value.args[1]
    if value.op == "size" and len(value.args) == 2:
        return tensor(value.args[0]), value.args[1]
    raise NotRecognised(f"rules do not know the size `{value.op}`")


def embedded(expr: Expr) -> tuple[Expr, Expr]:
    """Numbers and table of a look-up."""
    b = given(expr, "x weight")
    return tensor(b["x"]), tensor(b["weight"])


def is_elementwise(expr: Expr) -> bool:
    """Whether it may be: the graph that it becomes is looked at in the end."""
    if expr.op == "layer":
        return str(expr.setting("kind")) in LAYERS
    return expr.op in FUNCTIONS


def operands(expr: Expr) -> list[Expr]:
    """Tensors among the arguments."""
    listed = [*expr.args, *(value for name, value in expr.settings if name != "kind")]
    return [each for each in listed if isinstance(each, Expr) and each.op != "number"]
