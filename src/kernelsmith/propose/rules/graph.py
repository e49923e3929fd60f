"""The typed graph between a task's source and a kernel: a few operators over rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class NotRecognised(Exception):
    """The rules cannot say what the task computes; the text is one line for the user."""


UNFORESEEN = (LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError,
              SyntaxError, ArithmeticError, NotImplementedError, OSError)  # fmt: skip
"""What code that reads other people's text raises where nobody thought of it: a compiler's output
that one family cannot read is no reason to do without the others."""


class Shape(StrEnum):
    """How a value lies over a tensor of rows: all leading dimensions by the trailing ones."""

    FULL = "full"
    """One value per element."""
    COLUMN = "column"
    """One per position in a row: a bias, a weight."""
    ROW = "row"
    """One per row, the reduced dimension kept with size 1."""
    SQUEEZED = "squeezed"
    """One per row, the reduced dimension gone."""
    SCALAR = "scalar"
    """One for all."""


class Kind(StrEnum):
    """What a node is."""

    INPUT = "input"
    """A tensor that the kernel reads; ``text`` is its name in ``forward``."""
    PARAMETER = "parameter"
    """A weight, read at call time; ``text`` is ``self.weight``."""
    NUMBER = "number"
    """A Python number known at call time only; ``text`` is ``self.eps``."""
    CONSTANT = "constant"
    """A number known now; ``value`` holds it."""
    COUNT = "count"
    """``dim`` (row length) or ``rows``, in ``text``."""
    UNARY = "unary"
    BINARY = "binary"
    SELECT = "select"
    """Condition, value if true, value if false."""
    REDUCE = "reduce"
    """``sum``, ``max`` or ``min`` over a row."""
    TOTAL = "total"
    """``sum`` over all rows of one value per row."""
    VIEW = "view"
    """The same values under another shape."""


UNARY = ("neg", "abs", "exp", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "tanh", "erf",
         "sigmoid", "sin", "cos", "floor", "sign", "or_zero")  # fmt: skip
"""``or_zero`` is its argument, or 0 where that is infinite: what logsumexp shifts by."""
BINARY = ("add", "sub", "mul", "div", "max", "min", "pow", "lt", "le", "gt", "ge")
COMPARED = {"lt", "le", "gt", "ge"}
COSTLY = {"exp", "log", "log1p", "tanh", "erf", "sigmoid", "sin", "cos", "pow"}
"""Operators that take many instructions; worth keeping rather than computing twice."""
POLYNOMIAL = {"exp", "log", "log1p", "tanh", "erf", "sigmoid"}
"""Operators for which the templates bring an implementation of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value; arguments are numbers of earlier nodes."""

    kind: Kind
    shape: Shape
    op: str = ""
    args: tuple[int, ...] = ()
    text: str = ""
    value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What a task computes: nodes in order, one of which is the result."""

    nodes: tuple[Node, ...]
    output: int
    trailing: int = 1
    """How many trailing dimensions make up a row."""
    prefix: tuple[tuple[str, str], ...] = ()
    """Library products that run first: name and Python expression."""
    inputs: tuple[str, ...] = ()
    """Arguments of ``forward`` that are tensors, in order."""
    shaped_like: str = ""
    """The full tensor whose shape the output follows."""
    overall: bool = False
    """Whether a row is all that there is."""
    rank: int | None = None
    """How many dimensions that tensor has, where the task counts them from the front."""

    @property
    def result(self) -> Node:
        """The node that is returned."""
        return self.nodes[self.output]

    @property
    def has_rows(self) -> bool:
        """Whether the kernel must know where a row ends; if not, all is one flat stretch."""
        totalled = {n.args[0] for n in self.nodes if n.kind is Kind.TOTAL}
        return any(
            (
                n.shape in (Shape.COLUMN, Shape.ROW, Shape.SQUEEZED)
                and not (i in totalled and n.kind is Kind.REDUCE and self._users(i) == 1)
            )
            or (n.kind is Kind.COUNT and n.text == "dim" and n.op != "all")
            for i, n in enumerate(self.nodes)
        )

    def _users(self, number: int) -> int:
        return sum(n.args.count(number) for n in self.nodes)

    def ops(self) -> set[str]:
        """Names of all operators in it."""
        return {n.op for n in self.nodes if n.op}

    def of(self, *kinds: Kind) -> list[int]:
        """Numbers of the nodes of these kinds."""
        return [i for i, n in enumerate(self.nodes) if n.kind in kinds]


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of an elementwise result."""
    if a is b or b is Shape.SCALAR:
        return a
    if a is Shape.SCALAR:
        return b
    if Shape.SQUEEZED in (a, b):
        raise NotRecognised(
            f"rules do not know how a {a} and a {b} tensor broadcast; keep the reduced dimension"
        )
    return Shape.FULL


@dataclass(slots=True)
class Builder:
    """Collects nodes; equal ones are made once, and numbers are folded."""

    nodes: list[Node] = field(default_factory=list)
    truths: set[int] = field(default_factory=set)
    """Numbers of nodes whose values are true or false: two of them added are one that is true."""
    _known: dict[Node, int] = field(default_factory=dict)

    def add(self, node: Node) -> int:
        """Return the number of this node, new or not."""
        if node not in self._known:
            number = self._known[node] = len(self.nodes)
            self.nodes.append(node)
            if self._is_truth(node):
                self.truths.add(number)
        return self._known[node]

    def _is_truth(self, node: Node) -> bool:
        if node.kind is Kind.BINARY and node.op in COMPARED:
            return True
        keeps = node.kind in (Kind.VIEW, Kind.SELECT) or node.op in ("mul", "max", "min")
        values = node.args[1:] if node.kind is Kind.SELECT else node.args
        return keeps and bool(values) and self.truths.issuperset(values)

    def shape(self, number: int) -> Shape:
        """The shape of a node."""
        return self.nodes[number].shape

    def constant(self, value: float) -> int:
        """A number known now."""
        return self.add(Node(kind=Kind.CONSTANT, shape=Shape.SCALAR, value=float(value)))

    def count(self, what: str) -> int:
        """``dim`` or ``rows``."""
        return self.add(Node(kind=Kind.COUNT, shape=Shape.SCALAR, text=what))

    def unary(self, op: str, a: int) -> int:
        """Apply an operator to each value."""
        assert op in UNARY, op
        return self.add(Node(kind=Kind.UNARY, op=op, args=(a,), shape=self.shape(a)))

    def binary(self, op: str, a: int, b: int) -> int:
        """Apply an operator to each pair of values, broadcasting."""
        assert op in BINARY, op
        if op in ("add", "sub") and {a, b} <= self.truths:
            raise NotRecognised("rules do not know what truth values add up to")
        shape = broadcast(self.shape(a), self.shape(b))
        folded = self._folded(op, self.nodes[a], self.nodes[b])
        if folded is not None:
            return folded
        return self.add(Node(kind=Kind.BINARY, op=op, args=(a, b), shape=shape))

    def _folded(self, op: str, a: Node, b: Node) -> int | None:
        if a.kind is not Kind.CONSTANT or b.kind is not Kind.CONSTANT:
            return None
        x, y = a.value, b.value
        try:
            match op:
                case "add":
                    value = x + y
                case "sub":
                    value = x - y
                case "mul":
                    value = x * y
                case "div":
                    value = x / y
                case "pow":
                    value = x**y
                case _:
                    return None
        except ArithmeticError:
            return None
        return self.constant(value) if isinstance(value, float) else None

    def select(self, condition: int, a: int, b: int) -> int:
        """Choose per element."""
        shape = broadcast(self.shape(condition), broadcast(self.shape(a), self.shape(b)))
        return self.add(Node(kind=Kind.SELECT, op="where", args=(condition, a, b), shape=shape))

    def reduce(self, op: str, a: int, *, keep: bool = True) -> int:
        """Reduce each row to one value."""
        if self.shape(a) is not Shape.FULL:
            raise NotRecognised(f"rules do not know the {op} of a {self.shape(a)} tensor")
        shape = Shape.ROW if keep else Shape.SQUEEZED
        made = self.add(Node(kind=Kind.REDUCE, op=op, args=(a,), shape=Shape.ROW))
        return made if keep else self.view(made, shape)

    def total(self, a: int) -> int:
        """Sum over everything: rows first, then all of them."""
        if self.shape(a) is Shape.FULL:
            a = self.reduce("sum", a)
        if self.shape(a) not in (Shape.ROW, Shape.SQUEEZED):
            raise NotRecognised(f"rules do not know the sum of a {self.shape(a)} tensor")
        return self.add(Node(kind=Kind.TOTAL, op="total", args=(a,), shape=Shape.SCALAR))

    def view(self, a: int, shape: Shape) -> int:
        """The same values, their reduced dimension kept or dropped."""
        if self.shape(a) is shape:
            return a
        return self.add(Node(kind=Kind.VIEW, args=(a,), shape=shape))


def pruned(nodes: list[Node], output: int) -> tuple[tuple[Node, ...], int]:
    """Leave out what the output does not need; renumber the rest."""
    needed: set[int] = set()
    stack = [output]
    while stack:
        number = stack.pop()
        if number not in needed:
            needed.add(number)
            stack += nodes[number].args
    order = sorted(needed)
    new = {old: i for i, old in enumerate(order)}
    kept = tuple(
        Node(kind=n.kind, shape=n.shape, op=n.op, args=tuple(new[a] for a in n.args),
             text=n.text, value=n.value)
        for n in (nodes[i] for i in order)
    )  # fmt: skip
    return kept, new[output]


def check_result(nodes: Sequence[Node], output: int, full: Sequence[str], *, behind: bool) -> None:
    """Insist that templates over rows can give this result; ``behind``: of a library's product.

    Raises:
        NotRecognised: They cannot.
    """
    after: set[int] = set()
    for number, node in enumerate(nodes):
        if node.kind is Kind.TOTAL or after & set(node.args):
            after.add(number)
            if node.shape is not Shape.SCALAR:
                raise NotRecognised("rules do not know a sum over everything that is used again")
    if not full:
        raise NotRecognised("rules find no tensor that is computed over")
    if nodes[output].kind is Kind.INPUT:
        raise NotRecognised(
            "rules leave products to the library and find nothing behind this one to fuse"
            if behind
            else "rules find nothing to compute"
        )
    if nodes[output].shape is Shape.COLUMN or (
        nodes[output].shape is Shape.SCALAR and output not in after
    ):
        raise NotRecognised("rules do not know an output that does not depend on the inputs")


def lies_in(shape: tuple[str, ...] | None, widest: tuple[str, ...] | None) -> Shape:
    """How an input lies over the largest one, by their dimensions as written."""
    if shape is None or widest is None or shape == widest:
        return Shape.FULL
    if len(shape) == len(widest) and shape[-1] == "1" and shape[:-1] == widest[:-1]:
        return Shape.ROW
    if len(shape) == 1 and shape[0] == widest[-1]:
        return Shape.COLUMN
    if len(shape) == len(widest) - 1 and shape == widest[:-1]:
        return Shape.SQUEEZED
    return Shape.FULL  # a product's operands; refused where a kernel would read them
