"""What follows a product element by element, read from a pointwise kernel's text.

Only what is understood is taken: one flat index over all of C, index variables that are arithmetic
of it, loads, elementwise operators, stores. C itself is read at the flat index and nowhere else, so
an element needs no other element of C and can be finished where it was computed.
"""

import ast
import re
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.call import Kernel
from kernelsmith.propose.rules.products.product import Product

_INDEX = re.compile(r"x\d+")
_SKIPPED = {"xnumel", "xoffset", "xindex", "xmask"}
_ELEMENTWISE = re.compile(
    r"(libdevice|tl_math|math|triton_helpers)\.(?!reduce|any|all|max2|min2|argm|welford|sort)\w+"
    r"|tl\.(where|sigmoid|exp2?|log2?|sqrt(_rn)?|rsqrt|abs|full|maximum|minimum|erf|sin|cos"
    r"|floor|ceil|fma|div_rn|fdiv|clamp|cast)|float"
)
_HELPERS = {"maximum", "minimum", "exp", "tanh", "log1p", "expm1", "is_nan", "is_inf", "truncate",
            "floor_divide", "floor_remainder"}  # fmt: skip
"""The elementwise ones of ``compiler.helpers``, which a prelude defines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """``target`` is read from memory; no index is a single number for all."""

    target: str
    pointer: str
    index: str
    suffix: str = ""
    """What follows the load: ``.to(tl.float32)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """An elementwise line of Triton."""

    target: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A result."""

    pointer: str
    index: str
    value: str


Line = Load | Compute | Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Epilogue:
    """The lines of a pointwise kernel over C; ``value`` is the element of C."""

    pointers: tuple[str, ...]
    """Its tensors in order, without C where C is only read."""
    indices: tuple[tuple[str, str], ...]
    """Index variables in order, with what they are of ``xindex``."""
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """``alpha * C + beta * bias``, with the bias's strides over batch, m and n."""

    strides: tuple[int, int, int]
    alpha: float = 1.0
    beta: float = 1.0


def read_epilogue(kernel: Kernel, of_c: frozenset[str], product: Product) -> Epilogue | None:
    """The epilogue that a kernel is, with C in the parameters ``of_c``; ``None`` of any other."""
    count = product.batch * product.m * product.n
    if kernel.schedule != "pointwise" or kernel.grid != "Grid1D" or not product.flat:
        return None
    if kernel.sizes != (("x", count),):
        return None
    found = [
        node for node in ast.parse(kernel.text).body
        if isinstance(node, ast.FunctionDef) and node.name == kernel.name
    ]  # fmt: skip
    if len(found) != 1:
        return None
    reader = _Reader(of_c, product)
    if not all(reader.takes(node) for node in found[0].body) or not reader.reads_c:
        return None
    stored = {each.pointer for each in reader.lines if isinstance(each, Store)}
    loaded = {each.pointer for each in reader.lines if isinstance(each, Load)}
    if not stored or stored & loaded:
        return None
    used = stored | loaded
    names = [each.arg for each in found[0].args.args]
    return Epilogue(
        pointers=tuple(each for each in names if each in used),
        indices=tuple(reader.indices.items()),
        lines=tuple(reader.lines),
    )


class _Reader:
    """Goes through a kernel's statements; stops at the first that is not understood."""

    def __init__(self, of_c: frozenset[str], product: Product) -> None:
        self.of_c = of_c
        self.type = product.out
        self.indices: dict[str, str] = {}
        self.lines: list[Line] = []
        self.reads_c = False

    def takes(self, node: ast.stmt) -> bool:
        """Understand one statement, or say no."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self._call(node.value)
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            return False
        return self._assigned(node.targets[0].id, node.value)

    def _assigned(self, name: str, value: ast.expr) -> bool:
        if name in _SKIPPED:
            return True
        if _INDEX.fullmatch(name):
            self.indices[name] = ast.unparse(value)
            return _arithmetic(value, {"xindex", *self.indices})
        suffix, inner = _without_cast(value)
        if _named(inner, "tl.load"):
            assert isinstance(inner, ast.Call)
            return self._load(name, inner, suffix)
        if _named(inner, "tl.broadcast_to"):
            assert isinstance(inner, ast.Call)
            self.lines.append(Compute(target=name, text=ast.unparse(inner.args[0]) + suffix))
            return isinstance(inner.args[0], ast.Name)
        if not _elementwise(value):
            return False
        text = re.sub(r"tl\.full\(\[1\],", "tl.full([1, 1],", ast.unparse(value))
        self.lines.append(Compute(target=name, text=text))
        return True

    def _load(self, name: str, call: ast.Call, suffix: str) -> bool:
        place = _place(call.args[0])
        if place is None:
            return False
        pointer, index = place
        if not _arithmetic(index, set(self.indices)):
            return False
        if pointer in self.of_c:
            self.reads_c = True
            cast = "" if self.type == "float32" else f".to(tl.{self.type})"
            self.lines.append(Compute(target=name, text=f"value{cast}{suffix}"))
            return self._is_flat(index)
        text = "" if isinstance(index, ast.Constant) and index.value == 0 else ast.unparse(index)
        self.lines.append(Load(target=name, pointer=pointer, index=text, suffix=suffix))
        return True

    def _call(self, call: ast.Call) -> bool:
        if _named(call, "tl.debug_barrier"):
            return True
        if not _named(call, "tl.store"):
            return False
        place = _place(call.args[0])
        if place is None or not isinstance(call.args[1], ast.Name):
            return False
        pointer, index = place
        self.lines.append(
            Store(pointer=pointer, index=ast.unparse(index), value=call.args[1].id)
        )  # fmt: skip
        return self._is_flat(index)

    def _is_flat(self, index: ast.expr) -> bool:
        """Whether an index is the element's own place."""
        return isinstance(index, ast.Name) and self.indices.get(index.id) == "xindex"


def _place(node: ast.expr) -> tuple[str, ast.expr] | None:
    """``pointer + (index)`` taken apart."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=index):
            return name, index
    return None


def _without_cast(node: ast.expr) -> tuple[str, ast.expr]:
    """``x.to(tl.float32)`` as its suffix and ``x``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to", value=ast.Call() as inner), args=args):
            return f".to({', '.join(ast.unparse(each) for each in args)})", inner
    return "", node


def _named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _arithmetic(node: ast.expr, names: set[str]) -> bool:
    """Whether an index is whole-number arithmetic of these variables."""
    match node:
        case ast.Constant(value=int()):
            return True
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, op=operator, right=right):
            whole = isinstance(operator, ast.Add | ast.Sub | ast.Mult | ast.Mod | ast.FloorDiv)
            return whole and _arithmetic(left, names) and _arithmetic(right, names)
    return False


def _elementwise(node: ast.expr) -> bool:
    """Whether an expression treats all elements alike, from values that were computed before."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            text = ast.unparse(each.func)
            cast = isinstance(each.func, ast.Attribute) and each.func.attr == "to"
            if not (_ELEMENTWISE.fullmatch(text) or text in _HELPERS or cast):
                return False
        if isinstance(each, ast.Name) and not _known(each.id):
            return False
        if isinstance(each, ast.Subscript | ast.Lambda | ast.NamedExpr):
            return False
    return True


def _known(name: str) -> bool:
    modules = {"tl", "libdevice", "tl_math", "math", "triton_helpers", "float"}
    return name in modules | _HELPERS or bool(re.fullmatch(r"tmp\d+|x\d+", name))
