"""Borders: where masks along a loop change, so that none is asked for between two of them.

Neighbours outside of an image are masked; but for the first and last few steps of a loop, masks say
the same. A loop is written once as a function and called for each part: in every call the C++
compiler knows the range of the variable, and masks are gone.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from kernelsmith.propose.rules.compiler.cpp_columns import by_columns
from kernelsmith.propose.rules.compiler.cpp_lines import padded
from kernelsmith.propose.rules.compiler.cpp_nests import is_innermost
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Check,
    Gather,
    Let,
    Loop,
    Masked,
    Statement,
    Store,
    loads,
    read,
    stored,
    stride,
    texts_of,
    walk,
)

_PARTS = 4
"""Parts of one loop, at most."""
_COPIES = 9
"""Copies of what is innermost, at most: nine for an image, with its corners and edges."""
_STATEMENTS = 1000
"""Statements that all copies together may have: a C++ compiler takes its time for each."""

_VECTOR = 16
"""Elements of the widest vector: shorter loops fill no register."""
_SHORT = 4
"""Innermost loops up to this length are unrolled by any compiler, which then knows all masks."""
_LARGE = 24
"""Lines of a body from which on g++ may call it instead of writing it in vectors."""

_Linear = Mapping[str, int]
"""A sum of variables, each with its factor; the constant stands under no name."""


@lru_cache(maxsize=1024)
def borders(body: tuple[Statement, ...]) -> Mapping[Loop, tuple[int, ...]]:
    """Where the loops of a kernel are to be cut; those that stay whole are left out."""
    found: dict[Loop, tuple[int, ...]] = {}
    for each in body:
        if isinstance(each, Loop):
            _cut(each, found)
    return found


def in_order(body: tuple[Statement, ...]) -> bool:
    """Whether every loop of a kernel that is cut gathers: its parts are swept as it would be."""
    return all(
        not is_innermost(each) or any(isinstance(one, Gather) for one in each.body)
        for each in borders(body)
    )


def _cut(loop: Loop, found: dict[Loop, tuple[int, ...]]) -> int:
    """How many copies of its innermost body a loop has, once it is cut; inner loops first."""
    if by_columns(loop) or (is_innermost(loop) and (loop.extent <= _SHORT or _is_serial(loop))):
        return 1
    inner = max((_cut(each, found) for each in loop.body if isinstance(each, Loop)), default=1)
    size = inner * sum(1 for _ in walk(loop.body))
    most = min(_PARTS, _COPIES // inner, _STATEMENTS // max(1, size))
    cuts = _fewer(breaks(loop), loop.extent, most)
    if cuts:
        found[loop] = cuts
    return inner * (len(cuts) + 1)


def _is_serial(loop: Loop) -> bool:
    """Whether steps are taken one by one, with jumps of their own: masks hardly count then."""
    return any(isinstance(each, Check) or (isinstance(each, Gather) and each.at)
               for each in walk(loop.body))  # fmt: skip


def _fewer(cuts: tuple[int, ...], extent: int, most: int) -> tuple[int, ...]:
    """Not more parts than ``most``: the shortest neighbours stay together."""
    kept = list(cuts)
    while kept and len(kept) >= most:
        ends = [0, *kept, extent]
        kept.remove(min(kept, key=lambda cut: _around(ends, cut)))
    return tuple(kept)


def _around(ends: list[int], cut: int) -> int:
    at = ends.index(cut)
    return ends[at + 1] - ends[at - 1]


@lru_cache(maxsize=4096)
def breaks(loop: Loop) -> tuple[int, ...]:
    """Steps of a loop at which a mask changes that asks for its variable, and for inner ones.

    Of what goes from 0 to 2 inside, both ends count: where all of a window begins to be within.
    """
    inside = {each.variable: each.extent for each in walk(loop.body) if isinstance(each, Loop)}
    lets = {each.name: each for each in walk(loop.body) if isinstance(each, Let)}
    found: set[int] = set()
    for condition in _conditions(loop.body, lets):
        for each in ast.walk(_tree(condition)):
            if isinstance(each, ast.Compare) and len(each.ops) == 1:
                left, right = (_linear(side, lets) for side in (each.left, each.comparators[0]))
                if left is not None and right is not None:
                    for form in _ends(_plus(left, right, -1), inside):
                        found |= _changes(each.ops[0], form, loop.variable)
    return tuple(sorted(each for each in found if 0 < each < loop.extent))


def _conditions(body: tuple[Statement, ...], lets: Mapping[str, Let]) -> Iterator[str]:
    """What masks and selections ask for, and the answers that these are made of."""
    waiting: list[str] = []
    for each in walk(body):
        waiting += [each.condition] if isinstance(each, Masked) else []
        waiting += [asked for text in texts_of(each) for asked in _selected(text)]
    seen: set[str] = set()
    while waiting:
        condition = waiting.pop()
        if condition in seen:
            continue
        seen.add(condition)
        yield condition
        named = re.findall(r"[A-Za-z_]\w*", condition)
        waiting += [
            lets[name].value for name in named if name in lets and lets[name].kind == "bool"
        ]


def _selected(text: str) -> Iterator[str]:
    """What stands before the question marks of an expression."""
    for match in re.finditer(r"\?", text):
        begin, depth = match.start(), 0
        while begin and depth >= 0 and (depth or text[begin - 1] not in ":,"):
            begin -= 1
            depth += (text[begin] in ")]") - (text[begin] in "([")
        yield text[begin + (depth < 0) : match.start()]


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.AST:
    """A condition as Python reads it; an empty tree where it does not."""
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    text = re.sub(r"(?<=[\d.])f\b", "", text)
    try:
        return ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return ast.Tuple(elts=[])


def _linear(node: ast.expr, lets: Mapping[str, Let]) -> _Linear | None:
    """An expression as a sum; none where it is something else."""
    match node:
        case ast.Constant(value=int(value)):
            return {"": value}
        case ast.Name(id=name) if name in lets:
            tree = _tree(lets[name].value)
            return _linear(tree.body, lets) if isinstance(tree, ast.Expression) else None
        case ast.Name(id=name):
            return {name: 1}
        case ast.Call(func=ast.Name(id="int64_t" | "int32_t"), args=[inside]):
            return _linear(inside, lets)
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            made = _linear(inside, lets)
            return None if made is None else _plus({}, made, -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            one, other = _linear(left, lets), _linear(right, lets)
            if one is None or other is None:
                return None
            if not isinstance(op, ast.Mult):
                return _plus(one, other, 1 if isinstance(op, ast.Add) else -1)
            number, rest = (one, other) if set(one) <= {""} else (other, one)
            return _plus({}, rest, number.get("", 0)) if set(number) <= {""} else None
    return None


def _plus(one: _Linear, other: _Linear, factor: int) -> _Linear:
    total = {name: one.get(name, 0) + factor * other.get(name, 0) for name in {*one, *other}}
    return {name: each for name, each in total.items() if each}


def _ends(form: _Linear, inside: Mapping[str, int]) -> list[_Linear]:
    """A sum at the least and the most that inner loops make of it."""
    rest = {name: factor for name, factor in form.items() if name not in inside}
    steps = [factor * (inside[name] - 1) for name, factor in form.items() if name in inside]
    return [
        _plus(rest, {"": sum(each for each in steps if (each < 0) is least)}, 1)
        for least in (False, True)
    ]


def _changes(op: ast.cmpop, left: _Linear, variable: str) -> set[int]:
    """Where the answer of a comparison with 0 changes, if it is one variable's alone."""
    if set(left) - {"", variable} or variable not in left:
        return set()
    step, begin = left[variable], left.get("", 0)
    if isinstance(op, ast.Eq | ast.NotEq):
        return {-begin // step, -begin // step + 1} if begin % step == 0 else set()
    up = isinstance(op, ast.GtE | ast.Lt)
    if step < 0:
        step, begin, up = -step, -begin, not up
    return {-(begin // step)} if up else {-begin // step + 1}


def between(loop: Loop, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The parts of a loop, from where to where."""
    return list(pairwise((0, *cuts, loop.extent)))


def calls_of(loop: Loop, cuts: Sequence[int], lanes: int, *, again: bool) -> list[str]:
    """What goes over each part of an innermost loop that gathers nothing.

    Args:
        loop: The loop.
        cuts: Where it is cut.
        lanes: Elements side by side, at most.
        again: Whether a step may be done again: no other pointer leads to what is written.
    """
    parts = between(loop, cuts)
    texts = [text for each in walk(loop.body) for text in texts_of(each)]
    steps = {stride(index, loop.variable) for text in texts for _, index in loads(text)}
    if not steps <= {0, 1}:  # a vector reads beyond its last element: g++ wants to see the end
        return [f"along({begin}, {end}, " for begin, end in parts]
    adds = any(isinstance(each, Store) and each.adds for each in walk(loop.body))
    if adds or not again or stored(loop.body) & read(loop.body):
        return [f"sweep<{_lanes(end - begin, lanes)}>({begin}, {end}, " for begin, end in parts]
    return [f"cover<{_lanes(end - begin, lanes)}>({begin}, {end}, " for begin, end in parts]


def _lanes(steps: int, most: int) -> int:
    """How many elements are taken side by side, so that the fewest are taken twice."""
    fitting = [1 << power for power in range(most.bit_length()) if 1 << power <= min(steps, most)]
    wide = [each for each in fitting if each >= _VECTOR] or fitting[-1:]
    return min(wide, key=lambda each: (-(-steps // each) * each, -each))


def in_parts(calls: Sequence[str], head: str, inside: list[str]) -> list[str]:
    """A loop's steps side by side, part by part.

    Args:
        calls: What goes over each part, up to where a function of the step is named.
        head: The head of that function.
        inside: Its body.
    """
    if len(calls) == 1:
        always = " ALWAYS" if len(inside) >= _LARGE else ""
        return [f"{calls[0]}{head}{always} {{", *padded(inside), "});"]
    lines = [f"const auto each = {head} ALWAYS {{", *padded(inside), "};"]
    lines += [f"{call}each);" for call in calls]
    return ["{", *padded(lines), "}"]


def dispatched(
    loops: Sequence[Loop], cuts: Mapping[Loop, tuple[int, ...]], inside: list[str]
) -> list[str]:
    """What is inside of loops, called by itself in each of their parts."""
    loops = [each for each in loops if each in cuts]
    if not loops:
        return inside
    taken = ", ".join(f"int64_t {each.variable}" for each in loops)
    head = f"const auto line = [&]({taken}) ALWAYS {{"
    return [head, *padded(inside), "};", *_asked(loops, cuts, ())]


def _asked(
    loops: Sequence[Loop], cuts: Mapping[Loop, tuple[int, ...]], given: tuple[str, ...]
) -> list[str]:
    """Which part the variables are in, one loop after the other."""
    if not loops:
        return [f"line({', '.join(given)});"]
    loop, *rest = loops
    lines: list[str] = []
    for begin, end in between(loop, cuts[loop]):
        inside = _asked(rest, cuts, (*given, loop.variable if end > begin + 1 else str(begin)))
        last = end == loop.extent
        head = f"{'else ' if lines else ''}{'' if last else f'if ({loop.variable} < {end}) '}"
        lines += [head + inside[0]] if not rest else [f"{head}{{", *padded(inside), "}"]
    return lines
