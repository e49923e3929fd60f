"""Nodes as text: one line of C++ or Triton per value, where every tensor is one block of values."""

from collections.abc import Mapping, Sequence

from kernelsmith.propose.rules.cpp_prelude import functions
from kernelsmith.propose.rules.graph import BINARY, Kind, Node, Shape

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">",
          "ge": ">="}  # fmt: skip
_COMPARE = ("lt", "le", "gt", "ge")
_CPP = {"neg": "-{0}", "rsqrt": "1.0f / vsqrt({0})", "reciprocal": "1.0f / {0}",
        "or_zero": "((vabs({0}) == INFINITY) ? vec{{}} : {0})"}  # fmt: skip
_CPP_SCALAR = {
    "neg": "-{0}", "abs": "std::fabs({0})", "rsqrt": "1.0f / std::sqrt({0})",
    "reciprocal": "1.0f / {0}", "sigmoid": "1.0f / (1.0f + std::exp(-{0}))",
}  # fmt: skip
_TRITON = {
    "neg": "-{0}", "reciprocal": "1.0 / {0}", "sigmoid": "1.0 / (1.0 + tl.exp(-{0}))",
    "tanh": "tanh({0})", "log1p": "log1p({0})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 0.0))",
    "or_zero": "tl.where(tl.abs({0}) == float('inf'), 0.0, {0})",
    "max": "tl.maximum({0}, {1}, tl.PropagateNan.ALL)",
    "min": "tl.minimum({0}, {1}, tl.PropagateNan.ALL)",
}  # fmt: skip
_TRITON_FUNCTIONS = {
    "tanh": '''\
@triton.jit
def tanh(x):
    z = x * x  # odd polynomial near 0, where the other form cancels
    p = 2.1475370e-3 * z - 8.1826737e-3
    p = ((p * z + 2.1702968e-2) * z - 5.3947203e-2) * z + 1.3333210e-1
    near = x + x * z * (p * z - 3.3333331e-1)
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0, -far, far))


''',
    "log1p": '''\
@triton.jit
def log1p(x):
    u = 1.0 + x  # log(u) + what 1 + x lost in rounding, over u
    lost = tl.where(u > 0.0, (x - (u - 1.0)) / u, 0.0)
    return tl.where(u < float("inf"), tl.log(u) + lost, x)


''',
}  # fmt: skip


class Texts:
    """Writes the lines that compute some nodes from others; each node once.

    A node is named ``v7``, or ``s7`` where it is one number for all. ``given`` holds the text of
    what the kernel has already.
    """

    def __init__(self, nodes: Sequence[Node], given: Mapping[int, str], *, cpp: bool) -> None:
        self._nodes = nodes
        self.given = dict(given)
        self._cpp = cpp

    def lines(self, wanted: Sequence[int]) -> list[str]:
        """All that these need and that is not there yet, in order."""
        made: list[str] = []
        for n in wanted:
            node = self._nodes[n]
            if n in self.given or node.kind in (Kind.CONSTANT, Kind.NUMBER):
                continue
            made += self.lines(node.args)
            if node.kind is Kind.VIEW:
                continue
            assert node.kind in (Kind.UNARY, Kind.BINARY, Kind.SELECT), node
            name = self.name(n)
            self.given[n] = name
            scalar = node.shape is Shape.SCALAR
            if self._cpp:
                text = self._cpp_scalar(n) if scalar else self._cpp_vector(n)
                made.append(f"const {'float' if scalar else 'vec'} {name} = {text};")
            else:
                made.append(f"{name} = {self._triton(n)}")
        return made

    def name(self, n: int) -> str:
        """What a node is called in the kernel."""
        node = self._nodes[n]
        if n in self.given:
            return self.given[n]
        if node.kind is Kind.CONSTANT:
            return _cpp_number(node.value) if self._cpp else _triton_number(node.value)
        if node.kind is Kind.VIEW:
            return self.name(node.args[0])
        return f"s{n}" if node.shape is Shape.SCALAR else f"v{n}"

    def _block(self, n: int) -> str:
        name = self.name(n)
        return f"splat({name})" if self._nodes[n].shape is Shape.SCALAR else name

    def _cpp_vector(self, n: int) -> str:
        node = self._nodes[n]
        if node.kind is Kind.SELECT:
            c, a, b = (self._block(each) for each in node.args)
            return f"({c} != 0.0f) ? {a} : {b}"
        if node.op in _COMPARE:
            a, b = (self._block(each) for each in node.args)
            return f"({a} {_INFIX[node.op]} {b}) ? splat(1.0f) : vec{{}}"
        if node.op in _INFIX:
            a, b = (self.name(each) for each in node.args)
            return f"{a} {_INFIX[node.op]} {b}"
        given = [self._block(each) for each in node.args]
        return _CPP.get(node.op, f"v{node.op}({', '.join(given)})").format(*given)

    def _cpp_scalar(self, n: int) -> str:
        node, given = self._nodes[n], [self.name(each) for each in self._nodes[n].args]
        if node.kind is Kind.SELECT:
            return f"{given[0]} != 0 ? {given[1]} : {given[2]}"
        if node.op in _INFIX:
            return f"{given[0]} {_INFIX[node.op]} {given[1]}"
        if node.op in BINARY:
            return f"{'std::' if node.op == 'pow' else 'v'}{node.op}({given[0]}, {given[1]})"
        return _CPP_SCALAR.get(node.op, f"std::{node.op}({{0}})").format(given[0])

    def _triton(self, n: int) -> str:
        node, given = self._nodes[n], [self.name(each) for each in self._nodes[n].args]
        if node.kind is Kind.SELECT:
            return f"tl.where({', '.join(given)})"
        if node.op in _INFIX:
            return f"{given[0]} {_INFIX[node.op]} {given[1]}"
        return _TRITON.get(node.op, f"tl.{node.op}({{0}})").format(*given)


def cpp_functions(nodes: Sequence[Node], *, polynomial: bool, also: frozenset[str]) -> str:
    """The vector functions that these nodes call, and some others."""
    wanted = {n.op for n in nodes if n.op and n.kind is not Kind.REDUCE}
    return functions(wanted | also, polynomial=polynomial)


def triton_functions(nodes: Sequence[Node]) -> str:
    """Functions of our own that these nodes call."""
    ops = {n.op for n in nodes}
    return "".join(text for name, text in _TRITON_FUNCTIONS.items() if name in ops)


def _cpp_number(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return f"{value!r}f" if value >= 0 else f"({value!r}f)"


def _triton_number(value: float) -> str:
    return f"float('{value}')" if abs(value) == float("inf") else repr(value)
