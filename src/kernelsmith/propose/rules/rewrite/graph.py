"""The typed graph that the rewriting rules work on: nodes with shapes, each made once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Value = bool | int | float | str | None | tuple["Value", ...]
"""What an attribute may be."""
Dims = tuple[int, ...]

NONE = -1
"""Stands for an argument that is not given (no bias)."""

LEAVES = {"input", "weight", "number", "full"}
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""The distance of one from the next number."""
FLOATS = set(EPS)
UNARY = {
    "relu", "sigmoid", "tanh", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "clamp",
    "leaky_relu", "elu", "selu", "softplus", "softsign", "logsigmoid", "exp", "log", "sqrt",
    "rsqrt", "abs", "neg", "square", "erf", "sin", "cos", "reciprocal", "log1p", "expm1",
}  # fmt: skip
BINARY = {"add", "sub", "mul", "div", "maximum", "minimum"}
REDUCTIONS = {"sum", "mean", "amax", "amin", "logsumexp", "var"}
POINTWISE = UNARY | BINARY
VIEWS = {"reshape", "permute", "expand", "slice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value; inputs are numbers of earlier nodes, or ``NONE``."""

    op: str
    inputs: Dims = ()
    attrs: tuple[tuple[str, Value], ...] = ()
    shape: Dims = ()
    dtype: str = "float32"

    def attr(self, name: str) -> Value:
        """The value of one attribute."""
        return dict(self.attrs)[name]

    def dims(self, name: str) -> Dims:
        """An attribute that is a tuple of integers."""
        value = self.attr(name)
        assert isinstance(value, tuple)
        return tuple(int(each) for each in value if isinstance(each, int))

    def integer(self, name: str) -> int:
        """An attribute that is an integer."""
        value = self.attr(name)
        assert isinstance(value, int)
        return value

    def number(self, name: str = "value") -> float:
        """An attribute that is a number."""
        value = self.attr(name)
        assert isinstance(value, int | float)
        return float(value)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return product(self.shape)


@dataclass(slots=True)
class Arena:
    """All nodes of a task's graph and of its rewritten forms; a form is a tuple of roots.

    Inputs come before their users, so that numbers in ascending order are an order of evaluation.
    Equal nodes are one node: common subexpressions are found by being made.
    """

    nodes: list[Node] = field(default_factory=list)
    _known: dict[Node, int] = field(default_factory=dict)

    def __getitem__(self, number: int) -> Node:
        return self.nodes[number]

    def add(self, node: Node) -> int:
        """The number of this node, new or not."""
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return self._known[node]

    def shape(self, number: int) -> Dims:
        """The shape of a node."""
        return self.nodes[number].shape

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """What the roots need, in order of evaluation."""
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            number = stack.pop()
            if number != NONE and number not in seen:
                seen.add(number)
                stack += self.nodes[number].inputs
        return sorted(seen)

    def users(self, roots: Iterable[int]) -> dict[int, list[int]]:
        """Which nodes read which, among those that the roots need."""
        found: dict[int, list[int]] = {}
        for number in self.reachable(roots):
            for each in self.nodes[number].inputs:
                found.setdefault(each, []).append(number)
        return found

    def replaced(self, roots: tuple[int, ...], new: Mapping[int, int]) -> tuple[int, ...]:
        """The roots with some nodes replaced in all their users; shapes must not change."""
        now: dict[int, int] = {NONE: NONE}
        for number in self.reachable(roots):
            node = self.nodes[number]
            if number in new:
                other = self.nodes[new[number]]
                assert (other.shape, other.dtype) == (node.shape, node.dtype), (node, other)
                now[number] = new[number]
                continue
            inputs = tuple(now[each] for each in node.inputs)
            now[number] = number if inputs == node.inputs else self._again(node, inputs)
        return tuple(now[each] for each in roots)

    def _again(self, node: Node, inputs: Dims) -> int:
        return self.add(Node(op=node.op, inputs=inputs, attrs=node.attrs, shape=node.shape,
                             dtype=node.dtype))  # fmt: skip

    def depends(self, number: int, on: str = "input") -> bool:
        """Whether a node of this kind is among those that it needs."""
        return any(self.nodes[each].op == on for each in self.reachable([number]))


def product(values: Iterable[int]) -> int:
    """All of them multiplied."""
    total = 1
    for each in values:
        total *= each
    return total


def broadcast(a: Dims, b: Dims) -> Dims:
    """The shape of an elementwise result.

    Raises:
        ValueError: They do not broadcast.
    """
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(left, right, strict=True)):
        raise ValueError(f"{a} and {b} do not broadcast")
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))


def aligned(shape: Dims, rank: int) -> Dims:
    """A shape with ones in front, as broadcasting reads it."""
    return (1,) * (rank - len(shape)) + shape


def reduced(shape: Dims, dims: Dims, *, keep: bool) -> Dims:
    """The shape after a reduction."""
    if keep:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def windows(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many windows of a convolution or pooling fit."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
