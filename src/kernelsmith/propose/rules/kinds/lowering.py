"""From a traced expression to nodes of the graph, by the functions that the rows template knows."""

from collections.abc import Callable

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.functions import FUNCTIONS, LAYERS, RENAMED
from kernelsmith.propose.rules.graph import Builder, Kind, Node, NotRecognised, Shape, pruned
from kernelsmith.propose.rules.kinds.trace import Expr, Value
from kernelsmith.propose.rules.operators import Operators
from kernelsmith.propose.rules.promotion import check_types, is_single
from kernelsmith.propose.rules.values import Late, Tensor
from kernelsmith.propose.rules.values import Value as Read

Leaf = Callable[["Lowering", Expr], int | None]
"""Makes a node of what the kind itself knows; ``None`` of all else."""


class Lowering:
    """Builds one graph; what it does not know is a rejection."""

    def __init__(self, leaf: Leaf, axis: Callable[[Read], None] | None = None) -> None:
        self.build = Builder()
        self.ops = Operators(self.build)
        self._leaf = leaf
        self._axis = axis
        self._known: dict[Expr, int] = {}

    def lower(self, expr: Expr) -> int:
        """The node of an expression."""
        if expr not in self._known:
            made = self._leaf(self, expr)
            if made is not None and expr.integer:
                self.build.truths.add(made)  # masks, and indices, which are no floats either
            self._known[expr] = self._made(expr) if made is None else made
        return self._known[expr]

    def needed(self, output: int, task: Task) -> tuple[tuple[Node, ...], int]:
        """What a result hangs on, if torch gives it the inputs' dtype, which is what kernels write.

        Raises:
            NotRecognised: It is a count or a truth value, or float32 whatever the inputs are.
        """
        self.check_result(output, task)
        return pruned(self.build.nodes, output)

    def check_result(self, output: int, task: Task) -> None:
        """Insist on a result that torch gives the inputs' dtype.

        Raises:
            NotRecognised: It is a count or a truth value, or float32 whatever the inputs are.
        """
        check_types(self.build.nodes, output, single=is_single(task))

    def _made(self, expr: Expr) -> int:
        name, args, settings = expr.op, list(expr.args), dict(expr.settings)
        if name == "item" and isinstance(expr.args[0], Expr) and expr.args[1] == 0:
            inner = expr.args[0]
            if inner.op in ("max", "min") and _over_dim(inner):
                name, args, settings = f"a{inner.op}", list(inner.args), dict(inner.settings)
        elif name in ("max", "min") and len(args) == 2 and isinstance(args[1], Expr):
            name = f"{name}imum"
        elif name == "layer":
            kind = str(settings.pop("kind"))
            if kind not in LAYERS:
                raise NotRecognised(f"rules do not know torch.nn.{kind} here")
            name = LAYERS[kind][0]
            settings = {RENAMED.get(key, key): value for key, value in settings.items()}
        if name == "prod":
            return self._product(args, settings)
        if name in ("squeeze", "unsqueeze"):
            return self._resized(name, args, settings)
        if name not in FUNCTIONS:
            raise NotRecognised(f"rules do not know {name} here")
        known = FUNCTIONS[name]
        given = {key: self._read(value) for key, value in settings.items()}
        return known.make(self, known.bind(name, [self._read(each) for each in args], given))

    def _product(self, args: list[Value], settings: dict[str, Value]) -> int:
        given = dict(zip(("x", "dim", "keepdim"), args, strict=False)) | settings
        if not set(given) <= {"x", "dim", "keepdim"} or "dim" not in given:
            raise NotRecognised("rules know prod over one dimension")
        self.check_row(self._read(given["dim"]))
        keep = bool(given.get("keepdim"))
        return self.build.reduce("prod", self.node(self._read(given["x"])), keep=keep)

    def _resized(self, name: str, args: list[Value], settings: dict[str, Value]) -> int:
        """The reduced dimension dropped or put back; it is counted as in the whole tensor."""
        given = dict(zip(("x", "dim"), args, strict=False)) | settings
        if set(given) != {"x", "dim"} or len(args) > 2:
            raise NotRecognised(f"rules do not know these arguments of {name}")
        node = self.node(self._read(given["x"]))
        shapes = (Shape.ROW, Shape.SQUEEZED)
        before, after = shapes if name == "squeeze" else shapes[::-1]
        if self.build.shape(node) is not before:
            raise NotRecognised(f"rules do not know {name} here")
        self.check_row(self._read(given["dim"]))
        return self.build.view(node, after)

    def _read(self, value: Value) -> Read:
        if isinstance(value, Expr):
            if value.op == "number":
                return Late(text=value.text, known=value.known)
            return Tensor(node=self.lower(value))
        if isinstance(value, tuple):
            if not all(isinstance(each, int | float | str) for each in value):
                raise NotRecognised("rules do not know a tuple of tensors here")
            return tuple(each for each in value if isinstance(each, int | float | str))
        return value

    def node(self, value: Read) -> int:
        """A tensor or number as a node."""
        if isinstance(value, Tensor) and value.node is not None:
            return value.node
        if isinstance(value, Late):
            return self.number(value.text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.build.constant(value)
        raise NotRecognised(f"rules do not know what to compute with {value!r}")

    def number(self, text: str) -> int:
        """A number that is known at call time."""
        return self.build.add(Node(kind=Kind.NUMBER, shape=Shape.SCALAR, text=text))

    def check_row(self, dim: Read) -> None:
        """Hand a reduction's dimension to the kind."""
        if self._axis is None:
            raise NotRecognised("rules do not know reductions here")
        self._axis(dim)

    def check_all(self) -> None:
        """Refuse: only the rows template takes all for one row."""
        raise NotRecognised("rules do not know reductions over everything here")

    def check_matrix(self, what: str) -> None:
        """Refuse: only the rows template knows that."""
        raise NotRecognised(f"rules do not know {what} here")

    def product(self, text: str) -> Tensor:
        """Refuse: only the rows template has library products."""
        raise NotRecognised(f"rules do not know the product `{text}` here")


def _over_dim(expr: Expr) -> bool:
    """Whether a ``max`` goes along a dimension, rather than over two tensors."""
    if "dim" in dict(expr.settings):
        return True
    return len(expr.args) > 1 and not (
        isinstance(expr.args[1], Expr) and expr.args[1].op != "number"
    )
