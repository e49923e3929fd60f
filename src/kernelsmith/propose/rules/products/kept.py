"""Which elements of a product its epilogue keeps, read from the epilogue's lines.

``tril`` and ``triu`` of something that follows a product leave a triangle of it: whatever is stored
outside does not depend on the product, so it need not be multiplied there. Lines are followed value
by value; what is not understood depends on all of the product.
"""

import ast
import re
from dataclasses import dataclass

from kernelsmith.propose.rules.products.epilogue import Compute, Epilogue, Load, Store
from kernelsmith.propose.rules.products.product import Product, Triangle

_WHERE = "tl.where"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of a value."""

    free: bool = False
    """Whether it does not depend on the product at all."""
    kept: Triangle | None = None
    """Outside of this it does not depend on the product."""
    place: tuple[int, int, int] | None = None
    """Whole numbers: so many rows, so many columns, and a constant."""
    inside: Triangle | None = None
    """A condition: true in this triangle and nowhere else."""


_UNKNOWN = _Known()


def kept_of(epilogue: Epilogue, product: Product) -> Triangle | None:
    """The triangle outside of which nothing that is stored depends on the product."""
    values = {"value": _UNKNOWN} | {
        name: _Known(free=True, place=_index(text, product)) for name, text in epilogue.indices
    }
    stored: set[Triangle | None] = set()
    for line in epilogue.lines:
        match line:
            case Load():
                values[line.target] = _Known(free=True)
            case Compute():
                values[line.target] = _value(ast.parse(line.text, mode="eval").body, values)
            case Store():
                found = values.get(line.value, _UNKNOWN)
                if not found.free:
                    stored.add(found.kept)
    return stored.pop() if len(stored) == 1 else None


def _index(text: str, product: Product) -> tuple[int, int, int] | None:
    """An index variable as the row or the column of an element within its matrix."""
    m, n = product.m, product.n
    text = re.sub(r"[()\s]", "", text)
    if text == f"xindex%{n}":
        return 0, 1, 0
    if text == f"xindex//{n}%{m}" or (text == f"xindex//{n}" and product.batch == 1):
        return 1, 0, 0
    return None


def _value(node: ast.expr, values: dict[str, _Known]) -> _Known:
    if isinstance(node, ast.Name):
        return values.get(node.id, _UNKNOWN)
    place = _place(node, values)
    if place is not None:
        return _Known(free=True, place=place)
    if isinstance(node, ast.Compare):
        inside = _condition(node, values)
        if inside is not None:
            return _Known(free=True, inside=inside)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == _WHERE and len(node.args) == 3:
        condition, then, other = (_value(each, values) for each in node.args)
        if condition.inside is not None and other.free:
            return _Known(free=then.free, kept=condition.inside)
        if condition.inside is not None and then.free:
            return _Known(kept=condition.inside.rest)
    return _together([values.get(each, _UNKNOWN) for each in _names(node)])


def _names(node: ast.expr) -> set[str]:
    """What it is computed from; functions and types are none of it."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return {each for each in found if each == "value" or re.fullmatch(r"(tmp|x)\d+", each)}


def _together(parts: list[_Known]) -> _Known:
    """An elementwise function of several values."""
    bound = {each.kept for each in parts if not each.free}
    if not bound:
        return _Known(free=True)
    return _Known(kept=bound.pop()) if len(bound) == 1 else _UNKNOWN


def _place(node: ast.expr, values: dict[str, _Known]) -> tuple[int, int, int] | None:
    """Sums of rows, columns and whole numbers."""
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return 0, 0, number
        case ast.Name(id=name):
            return values[name].place if name in values else None
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _times(_place(inner, values), -1)
        case ast.BinOp(left=left, op=operator, right=right):
            one, other = _place(left, values), _place(right, values)
            if one is None or other is None:
                return None
            if isinstance(operator, ast.Add | ast.Sub):
                other = _times(other, 1 if isinstance(operator, ast.Add) else -1)
                assert other is not None
                return one[0] + other[0], one[1] + other[1], one[2] + other[2]
            if isinstance(operator, ast.Mult) and one[:2] == (0, 0):
                return _times(other, one[2])
            if isinstance(operator, ast.Mult) and other[:2] == (0, 0):
                return _times(one, other[2])
        case ast.Call(func=function, args=[ast.List(), inner, kind]) if ast.unparse(
            function
        ) == "tl.full" and ast.unparse(kind) in ("tl.int32", "tl.int64"):
            return _place(inner, values)
    return None


def _times(place: tuple[int, int, int] | None, by: int) -> tuple[int, int, int] | None:
    return None if place is None else (by * place[0], by * place[1], by * place[2])


def _condition(node: ast.Compare, values: dict[str, _Known]) -> Triangle | None:
    """A comparison of row and column: ``column - row <= by``, or not less than that."""
    if len(node.ops) != 1:
        return None
    one, other = _place(node.left, values), _place(node.comparators[0], values)
    if one is None or other is None:
        return None
    rows, columns, number = (a - b for a, b in zip(one, other, strict=True))
    if (rows, columns) not in ((-1, 1), (1, -1)):
        return None
    match node.ops[0]:
        case ast.LtE() | ast.Lt():
            less, strict = True, isinstance(node.ops[0], ast.Lt)
        case ast.GtE() | ast.Gt():
            less, strict = False, isinstance(node.ops[0], ast.Gt)
        case _:
            return None
    if columns == -1:  # row - column + number: the other way round
        less, number = not less, -number
    # column - row + number <= 0, or < 0
    return Triangle(lower=less, by=-number + (0 if not strict else -1 if less else 1))
