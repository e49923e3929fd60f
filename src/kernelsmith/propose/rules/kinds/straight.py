"""A ``forward`` read statement by statement, so that a part of it can be cut out and replaced.

What stands around the part stays as it is written: a kernel for attention needs to know nothing
about the projections before it. The part is looked for backwards, through names, as long as what
they stand for has not changed; statements that nobody needs any more are left out.
"""

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.attributes import attributes
from kernelsmith.propose.rules.constants import bound
from kernelsmith.propose.rules.construction import constructor_of
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import purity
from kernelsmith.propose.rules.kinds.purity import read
from kernelsmith.propose.rules.source import Module


@dataclass(frozen=True, slots=True)
class Seen:
    """An expression, and the statement before which it is evaluated."""

    node: ast.expr
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A part of ``forward`` and what takes its place."""

    at: int
    """The statement that holds it."""
    node: ast.expr | None
    """None: the statement as a whole."""
    name: str
    """What its value is from now on, in Python."""
    lines: tuple[str, ...]
    """Statements that make it; they may leave by ``return {plain}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One class of the file (or its function), with its ``forward``."""

    module: Module
    name: str
    function: ast.FunctionDef
    constructor: ast.FunctionDef | None
    is_function: bool

    @property
    def body(self) -> list[ast.stmt]:
        """Statements of ``forward``."""
        return self.function.body

    def plain(self, kept: Mapping[str, str]) -> str:
        """A call of the reference with the same arguments, some kept under other names."""
        names = [kept.get(each.arg, each.arg) for each in self.function.args.args]
        if self.is_function:
            return f"plain({', '.join(names)})"
        return f"self.plain({', '.join(names[1:])})"

    def _kept(self) -> dict[str, str]:
        """Names for arguments that ``forward`` gives another value on its way."""
        changed = set[str]().union(*map(bound, self.body))
        return {
            each.arg: f"given_{each.arg}" for each in self.function.args.args if each.arg in changed
        }

    def made(self, node: ast.expr) -> ast.expr | None:
        """What the constructor sets ``self.name`` to."""
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return attributes(self.constructor).get(name)
        return None

    def layer(self, node: ast.expr) -> str:
        """The torch class of ``self.name``: ``Dropout``; empty for all else."""
        made = self.made(node)
        if isinstance(made, ast.Call):
            name = self.module.dotted(made.func) or ""
            if name.startswith("torch.nn."):
                return name.rpartition(".")[2]
        return ""

    def called(self, node: ast.expr) -> tuple[str, list[ast.expr], dict[str, ast.expr]] | None:
        """A call as name, arguments (the object of a method first) and keywords."""
        if not isinstance(node, ast.Call):
            return None
        keywords = {each.arg: each.value for each in node.keywords if each.arg}
        if len(keywords) != len(node.keywords):
            return None
        dotted = self.module.dotted(node.func)
        if dotted is not None:
            known = dotted.startswith("torch.")
            return (dotted.rpartition(".")[2], list(node.args), keywords) if known else None
        if not isinstance(node.func, ast.Attribute):
            return None
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
            kind = self.layer(node.func)
            return (f"nn.{kind}", list(node.args), keywords) if kind else None
        return node.func.attr, [node.func.value, *node.args], keywords

    def seen(self, node: ast.expr, at: int) -> Seen:
        """What a name stands for at a statement, followed through plain assignments."""
        while isinstance(node, ast.Name):
            found = self._definition(node.id, at)
            if found is None:
                break
            node, at = found.node, found.at
        return Seen(node, at)

    def _definition(self, name: str, at: int) -> Seen | None:
        for i in range(at - 1, -1, -1):
            if name not in bound(self.body[i]):
                continue
            match self.body[i]:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                    return Seen(value, i)
            return None
        return None

    def text(self, seen: Seen, at: int) -> str:
        """An expression as it can be evaluated at a later statement.

        Raises:
            NotRecognised: A name in it stands for something else by then.
        """
        names = {each.id for each in ast.walk(seen.node) if isinstance(each, ast.Name)}
        for statement in self.body[seen.at : at]:
            changed = names & bound(statement)
            if changed:
                raise NotRecognised(f"rules lose {min(changed)!r}, which changes on the way")
        return ast.unparse(seen.node)

    def check_pure(self, at: int, part: ast.expr | None = None) -> None:
        """See that running the reference from the start is no different after some statements.

        Args:
            at: How many.
            part: What is cut out of the next one.

        Raises:
            NotRecognised: They change something, draw at random or keep count.
        """
        purity.check(self, at, part)

    def others(self) -> Iterator["Place"]:
        """Classes and functions of the file that may be called from here."""
        if not self.is_function:
            yield from places(self.module)
        for node in self.module.tree.body:
            if isinstance(node, ast.FunctionDef):
                yield Place(module=self.module, name=node.name, function=node, constructor=None,
                            is_function=True)  # fmt: skip

    def method(self, name: str) -> "Place | None":
        """Another method of this class."""
        for node in self.module.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == self.name.partition(".")[0]:
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name == name:
                        return replace(self, name=f"{node.name}.{name}", function=each)
        return None

    def rewritten(self, cuts: Sequence[Cut]) -> tuple[str, ...]:
        """The lines of ``forward`` with these parts replaced; what nobody needs is left out."""
        kept = self._kept()
        plain = self.plain(kept)
        body = ast.parse("\n".join(f"{new} = {old}" for old, new in kept.items())).body
        for i, statement in enumerate(self.body):
            here = [each for each in cuts if each.at == i]
            for cut in here:
                body += ast.parse("\n".join(cut.lines).replace("{plain}", plain)).body
            if any(cut.node is None for cut in here):
                continue
            swap = {id(cut.node): cut.name for cut in here}
            body.append(_Swap(swap).copied(statement))
        live = without_dead(body)
        return tuple(line for each in live for line in ast.unparse(each).split("\n"))


class _Swap(ast.NodeTransformer):
    """Puts names in the place of nodes, known by identity; works on a copy."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names

    def copied(self, statement: ast.stmt) -> ast.stmt:
        memo: dict[int, object] = {}
        made = copy.deepcopy(statement, memo)
        self._names = {id(memo[old]): name for old, name in self._names.items() if old in memo}
        changed = self.visit(made)
        assert isinstance(changed, ast.stmt)
        return ast.fix_missing_locations(changed)

    def visit(self, node: ast.AST) -> ast.AST:
        if id(node) in self._names:
            return ast.parse(self._names[id(node)], mode="eval").body
        found = self.generic_visit(node)
        assert isinstance(found, ast.AST)
        return found


def places(module: Module) -> Iterator[Place]:
    """Every class of the file that has a ``forward``, or the function that is the reference."""
    if module.task.is_function:
        yield Place(module=module, name=module.task.entry, function=module.forward,
                    constructor=None, is_function=True)  # fmt: skip
        return
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
            if "forward" in methods:
                yield Place(
                    module=module, name=node.name, function=methods["forward"],
                    constructor=constructor_of(module.tree, node.name), is_function=False,
                )  # fmt: skip


def without_dead(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Leave out assignments that nobody reads; straight lines only, all else is kept."""
    kept: list[ast.stmt] = []
    live: set[str] = set()
    for statement in reversed(body):
        match statement:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name not in live and not _acts(value):
                    continue
                live.discard(name)
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value):
                names = {each.id for each in elements if isinstance(each, ast.Name)}
                if len(names) == len(elements) and not names & live and not _acts(value):
                    continue
                live -= names
        live |= read(statement)
        kept.append(statement)
    return kept[::-1]


def _acts(node: ast.expr) -> bool:
    """Whether evaluating it may change something: a method in place, a module of unknown kind."""
    for each in ast.walk(node):
        if isinstance(each, ast.NamedExpr | ast.Await | ast.Yield):
            return True
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            name = each.func.attr
            if name.endswith("_") and not name.endswith("__"):
                return True
    return False
