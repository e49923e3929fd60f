"""Typed edits of null expressions: algebra by name, and a teacher that applies it.

The null backend has no rules of its own, so that a whole training cycle could be tried without any
hardware: here an expression gets cheaper by real rewrites (each operator costs a microsecond), and
some rewrites on offer are wrong on purpose, since a judge that never says no teaches nothing.
"""

import ast
import copy
import random
from collections.abc import Callable, Iterator, Mapping

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Message, Proposal, Step
from kernelsmith.propose.reply import Unreadable
from kernelsmith.training.forms import short

Rewrite = Callable[[ast.expr], ast.expr | None]
"""From a place in an expression to what stands there instead; none where it does not apply."""

_START = "start"


def _is(node: ast.expr, value: float) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _unit(node: ast.expr) -> ast.expr | None:
    """X * 1 and x / 1 are x."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return node.left if _is(node.right, 1) else None
    return None


def _zero(node: ast.expr) -> ast.expr | None:
    """X + 0 and x - 0 are x."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return node.left if _is(node.right, 0) else None
    return None


def _double(node: ast.expr) -> ast.expr | None:
    """-(-x) is x."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.UnaryOp):
        return node.operand.operand
    return None


def _factor(node: ast.expr) -> ast.expr | None:
    """A * b + a * c is a * (b + c)."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = node.left, node.right
        if (
            isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult)
            and isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mult)
            and _same(left.left, right.left)
        ):  # fmt: skip
            inner = ast.BinOp(left=left.right, op=node.op, right=right.right)
            return ast.BinOp(left=left.left, op=ast.Mult(), right=inner)
    return None


def _drop(node: ast.expr) -> ast.expr | None:
    """X + y is not x: wrong, and tempting."""
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else None


def _spread(node: ast.expr) -> ast.expr | None:
    """X is x * 1: right, and slower."""
    if isinstance(node, ast.Name):
        return ast.BinOp(left=node, op=ast.Mult(), right=ast.Constant(1))
    return None


REWRITES: Mapping[str, Rewrite] = {
    "unit": _unit, "zero": _zero, "double": _double, "factor": _factor, "drop": _drop,
    "spread": _spread,
}  # fmt: skip


def written(source: str) -> str:
    """An expression in one spelling, without comments."""
    try:
        return ast.unparse(ast.parse(source.strip(), mode="eval"))
    except SyntaxError as error:
        raise Unreadable(f"no expression: {error.msg}") from error


def rewritten(source: str) -> Iterator[tuple[str, str]]:
    """Every edit of an expression with what it gives: its name, and which place from the left."""
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except SyntaxError:
        return
    for name, rewrite in REWRITES.items():
        count = 0
        for index, node in enumerate(ast.walk(tree)):
            if isinstance(node, ast.expr) and rewrite(node) is not None:
                yield f"{name} {count}", _at(tree, index, rewrite)
                count += 1


def _at(tree: ast.Expression, index: int, rewrite: Rewrite) -> str:
    copied = copy.deepcopy(tree)
    target = list(ast.walk(copied))[index]

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if node is target:
                assert isinstance(node, ast.expr)
                found = rewrite(node)
                assert found is not None
                return found
            return self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Put().visit(copied)))


class AlgebraEdits:
    """The typed form of the null backend."""

    name = "typed"

    def at_hand(self, task: Task) -> bool:
        """All are."""
        return True

    def messages(self, brief: Brief) -> tuple[Message, ...]:
        """The current expression and its speed."""
        if brief.parent is None:
            return short.asked("no program yet")
        said = brief.parent.candidate.source.split("#")[0].strip()
        return short.asked(f"program {said}", f"speed {short.worth(brief.parent.evaluation)}")

    def answer(self, brief: Brief, source: str, note: str = "") -> str | None:
        """The edit that leads from the parent to ``source``."""
        del note
        wanted = written(source)
        if brief.parent is None:
            return _START if written(brief.task.source) == wanted else None
        found = [edit for edit, out in rewritten(brief.parent.candidate.source) if out == wanted]
        return found[0] if found else None

    def source(self, reply: str, brief: Brief, *, cut_off: bool = False) -> str:
        """Apply the edit."""
        said = " ".join(reply.split())
        if cut_off:
            raise Unreadable("the reply was cut off; an edit is two words")
        if brief.parent is None:
            if said != _START:
                raise Unreadable(f"there is no program yet; write {_START!r}")
            return written(brief.task.source)
        edits = dict(rewritten(brief.parent.candidate.source))
        if said not in edits:
            raise Unreadable(f"no edit {said[:40]!r}; there are {', '.join(edits) or 'none'}")
        return edits[said]


class AlgebraTeacher:
    """Proposes edits of null expressions: mostly what helps, sometimes what does not."""

    name = "algebra"

    def __init__(self) -> None:
        self._form = AlgebraEdits()

    async def propose(self, brief: Brief) -> Proposal:
        """Draw an edit by the brief's seed."""
        if brief.parent is None:
            return Proposal(source=written(brief.task.source), proposer=self.name, note=_START)
        draw = random.Random(f"{brief.seed} {brief.number}")
        edits = list(rewritten(brief.parent.candidate.source))
        if not edits:
            return Proposal(source=None, rejection="nothing applies", proposer=self.name)
        good = [each for each in edits if each[0].split()[0] not in ("drop", "spread")]
        edit, source = draw.choice(good if good and draw.random() < 0.75 else edits)
        return Proposal(source=source, proposer=self.name, note=edit, reply=edit)

    def learn(self, step: Step) -> None:
        """It knows what it knows."""

    async def close(self) -> None:
        """Nothing is open."""
