"""A kernel that looks for the place of the largest along a row, taken apart.

Only one loop over what is reduced, with nothing stored in it or before it, and nothing carried from
step to step but what the end reduces.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.call import Kernel

_PLACES = ("argmax_along", "argmin_along")
_VALUES = ("max_along", "min_along", "tl.sum")
_DTYPES = {"tl.float32": "float32", "tl.float64": "float64", "tl.int32": "int32",
           "tl.int64": "int64"}  # fmt: skip


class Whole(Exception):
    """The kernel is nothing that is cut here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a loop carries from step to step."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A kernel of one loop over the reduced dimension, taken apart."""

    function: ast.FunctionDef
    before: list[ast.stmt]
    """Without sizes, the program's place, and what the loop begins with."""
    begins: list[ast.stmt]
    loop: ast.For
    after: list[ast.stmt]
    kept: tuple[Kept, ...]
    joined: list[ast.Assign]
    """The statements of ``after`` that reduce what is kept."""

    @property
    def is_outer(self) -> bool:
        """Whether rows lie side by side: from one element of a row to the next is a step."""
        loads = [n for n in ast.walk(self.loop) if is_load(n)]
        return any(
            isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and "r0_" in ast.unparse(n)
            for load in loads for n in ast.walk(load.args[0])  # type: ignore[attr-defined]
        )  # fmt: skip


def read_search(kernel: Kernel) -> Search:
    """Take a kernel apart.

    Raises:
        Whole: It is not one loop that looks for a place, with nothing stored inside.
    """
    function = ast.parse(kernel.text).body[0]
    assert isinstance(function, ast.FunctionDef)
    loops = [each for each in ast.walk(function) if isinstance(each, ast.For | ast.While)]
    if kernel.schedule != "reduction" or len(loops) != 1 or "tl.int64" in kernel.text:
        raise Whole
    (loop,) = loops
    if not isinstance(loop, ast.For) or loop not in function.body:
        raise Whole
    known = {"tl.range(0, r0_numel, R0_BLOCK)", "range(0, r0_numel, R0_BLOCK)"}
    inside = [ast.unparse(each) for each in loop.body]
    calls = {ast.unparse(n.func) for n in ast.walk(loop) if isinstance(n, ast.Call)}
    stores = any("store" in each or "atomic" in each or "assert" in each for each in calls)
    begin = "r0_index = r0_offset + r0_base"
    if ast.unparse(loop.iter) not in known or begin not in inside or stores:
        raise Whole
    place = function.body.index(loop)
    before, after = function.body[:place], function.body[place + 1 :]
    if any(isinstance(each, ast.Expr) for each in before):
        raise Whole  # it stores what belongs to a row: parts would do so again, or nobody
    written = set(stored(loop))
    begins = [each for each in before if written & set(stored(each))]
    kept = tuple(_carried(each) for each in begins)
    carried = {each.name for each in kept}
    if any(len(carried & set(stored(each))) > 1 for each in loop.body):
        raise Whole
    own = ("r0_numel", "xnumel", "xoffset", "xindex")
    rest = [each for each in before if each not in begins and not set(stored(each)) & set(own)]
    joined = _joined(after, [each.name for each in kept])
    return Search(function=function, before=rest, begins=begins, loop=loop, after=after,
                 kept=kept, joined=joined)  # fmt: skip


def _carried(node: ast.stmt) -> Kept:
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.Call(func=func, args=[shape, _, dtype])
        ) if (
            ast.unparse(func) == "tl.full"
            and ast.unparse(shape) == "[XBLOCK, R0_BLOCK]"
            and ast.unparse(dtype) in _DTYPES
        ):
            return Kept(name=name, dtype=_DTYPES[ast.unparse(dtype)])
    raise Whole


def _joined(after: list[ast.stmt], kept: list[str]) -> list[ast.Assign]:
    """The statements that reduce what was kept, each of it once, a place among them."""
    found: list[ast.Assign] = []
    read: list[str] = []
    for each in after:
        names = [n.id for n in ast.walk(each) if isinstance(n, ast.Name) and n.id in kept]
        if not names:
            continue
        calls = [n for n in ast.walk(each) if reduces(n)]
        if not isinstance(each, ast.Assign) or len(calls) != 1:
            raise Whole
        given = [ast.unparse(n) for n in calls[0].args]  # type: ignore[attr-defined]
        if given != [*names, "1"]:
            raise Whole
        found.append(each)
        read += names
    if sorted(read) != sorted(kept) or not any(_asks_for_a_place(each) for each in found):
        raise Whole
    return found


def is_load(node: ast.AST) -> bool:
    """Whether memory is read there."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load"


def reduces(node: ast.AST) -> bool:
    """Whether it reduces along a row, to a place or a value."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in (*_PLACES, *_VALUES)


def _asks_for_a_place(node: ast.Assign) -> bool:
    return isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in _PLACES


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def stored(node: ast.AST) -> Iterator[str]:
    """The names that it gives something to."""
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_stored(n))


def pointers(function: ast.FunctionDef) -> list[str]:
    """Its parameters for tensors, in order."""
    plain = [each.arg for each in function.args.args if each.annotation is None]
    return [each for each in plain if not each.endswith("numel")]


def _used(function: ast.FunctionDef, nodes: list[ast.stmt]) -> list[str]:
    """Of the kernel's tensors those that these statements name, in order."""
    names = {n.id for each in nodes for n in ast.walk(each) if isinstance(n, ast.Name)}
    return [each for each in pointers(function) if each in names]


def of_loop(read: Search) -> list[str]:
    """The kernel's tensors that the loop needs."""
    return _used(read.function, [*needed(read.before, [read.loop]), read.loop])


def of_end(read: Search) -> list[str]:
    """The kernel's tensors that what follows the loop needs."""
    return _used(read.function, [*needed(read.before, read.after), *read.after])


def needed(before: list[ast.stmt], later: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that give names which later ones read."""
    names = {n.id for each in later for n in ast.walk(each) if isinstance(n, ast.Name)}
    found: list[ast.stmt] = []
    for each in reversed(before):
        if names & set(stored(each)):
            names |= {n.id for n in ast.walk(each) if isinstance(n, ast.Name)}
            found.insert(0, each)
    return found
