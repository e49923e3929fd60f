"""What one class needs, recursively, over files and packages: a closed set of definitions."""

import ast
from dataclasses import dataclass, field
from typing import cast

from kernelsmith.corpus.extract import seams
from kernelsmith.corpus.extract.clean import Unsafe
from kernelsmith.corpus.extract.forest import Alias, Forest, Inside, Missing, Outside, Seam
from kernelsmith.corpus.extract.guard import refuses_at_once
from kernelsmith.corpus.extract.lineage import Lineage
from kernelsmith.corpus.extract.pieces import Definition, Piece, define

MOST_DEFINITIONS = 150
_LEFT_OUT = {
    "__repr__", "__str__", "__del__", "__reduce__", "__getstate__", "__setstate__",
    "__deepcopy__", "__copy__", "__dir__", "__init_subclass__", "__class_getitem__",
}  # fmt: skip
_RESTARTS = 25


class Rejected(Exception):
    """A class that cannot be made to stand alone."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


class _Bad(Exception):
    def __init__(self, where: Inside, why: str) -> None:
        super().__init__(why)
        self.where, self.why = where, why


@dataclass(slots=True)
class Part:
    """One definition of a slice: what of it is kept, and what its names stand for."""

    definition: Definition
    body: Piece
    methods: dict[str, list[Piece]] = field(default_factory=dict)
    fields: dict[str, Piece] = field(default_factory=dict)
    names: dict[str, Inside | Outside | Seam] = field(default_factory=dict)

    def pieces(self) -> list[Piece]:
        """All that is kept."""
        found = [self.body, *self.fields.values()]
        return found + [piece for each in self.methods.values() for piece in each]


@dataclass(slots=True)
class Slice:
    """A closed set of definitions, the root among them."""

    root: Inside
    parts: dict[Inside, Part] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Names that were refused on some path, with what they would have been."""
    attributes: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)


_NOTHING = Piece("", frozenset(), frozenset(), frozenset(), frozenset())


class Slicer:
    """Cuts classes out of a forest; what it learns about one definition serves all others."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.lineage = Lineage(forest)
        self._definitions: dict[Inside, Definition | str] = {}
        self._bad: dict[Inside, str] = {}

    def cut(self, root: Inside) -> Slice:
        """Collect all that a class needs.

        Raises:
            Rejected: Something it cannot do without is not to be had.
        """
        for _ in range(_RESTARTS):
            try:
                return self._attempt(root)
            except _Bad as bad:
                self._bad[bad.where] = bad.why
                if bad.where == root:
                    raise Rejected("needs what is not here", bad.why) from None
        raise Rejected("needs what is not here", "too many of its definitions cannot be had")

    def definition(self, target: Inside) -> Definition:
        """One definition in pieces."""
        found = self._definitions.get(target)
        if found is None:
            try:
                found = define(self.forest, target)
            except Unsafe as error:
                found = str(error)
            except RecursionError:
                found = f"{target.name} is nested too deeply"
            self._definitions[target] = found
        if isinstance(found, str):
            raise _Bad(target, found)
        return found

    def _attempt(self, root: Inside) -> Slice:
        made = Slice(root)
        self._add(made, root)
        changed = True
        while changed:
            changed = False
            for target in list(made.parts):
                changed |= self._grow(made, target)
        self._check_values(made)
        self._check(made)
        return made

    def _check_values(self, made: Slice) -> None:
        """Give up values that call, while the module loads, a function that always refuses."""
        for target, part in made.parts.items():
            for name in _called(part.body.text) if part.definition.kind == "value" else ():
                found = part.names.get(name)
                inner = made.parts.get(found) if isinstance(found, Inside) else None
                if inner is None or inner.definition.kind != "function":
                    continue
                if why := refuses_at_once(inner.body.text):
                    raise _Bad(target, why.partition("needs ")[2].rstrip("'\")"))

    def _add(self, made: Slice, target: Inside) -> None:
        if target in made.parts:
            return
        if target in self._bad:
            raise _Bad(target, self._bad[target])
        if len(made.parts) >= MOST_DEFINITIONS:
            raise Rejected("needs too much", f"more than {MOST_DEFINITIONS} definitions")
        definition = self.definition(target)
        part = Part(definition, definition.body)
        made.parts[target] = part
        part.body = self._take(made, target, part, definition.body, must=True) or definition.body

    def _grow(self, made: Slice, target: Inside) -> bool:
        part = made.parts[target]
        changed = False
        for name, pieces in part.definition.methods.items():
            if name in part.methods or not self._wanted(made, target, name):
                continue
            must = name in ("__init__", "forward")
            kept = [self._take(made, target, part, each, must=must) for each in pieces]
            part.methods[name] = [each for each in kept if each is not None]
            changed = True
        for name, piece in part.definition.fields.items():
            plain = name.partition("#")[0]
            if name in part.fields:
                continue
            if part.definition.keeps_all or plain in made.attributes or not plain:
                taken = self._take(made, target, part, piece, must=part.definition.keeps_all)
                part.fields[name] = taken or _NOTHING
                changed = True
        return changed

    def _wanted(self, made: Slice, target: Inside, name: str) -> bool:
        if name.startswith("__") and name.endswith("__"):
            return name not in _LEFT_OUT or name in made.attributes
        if name == "forward" or name in made.attributes:
            return True
        return any(name.startswith(prefix) for prefix in made.prefixes)

    def _take(
        self, made: Slice, target: Inside, part: Part, piece: Piece, *, must: bool
    ) -> Piece | None:
        """Follow a piece's names; a refusal stands where one cannot be had."""
        missing: dict[str, str] = {}
        for name in piece.names:
            found = self.forest.resolve(target.module, name)
            if isinstance(found, Missing):
                missing[name] = found.what
            elif isinstance(found, Alias):
                missing[name] = f"the module {found.module} as a value"
            elif isinstance(found, Inside) and found in self._bad:
                missing[name] = f"{found.name} ({self._bad[found]})"[:200]
        taken = piece.without(missing)
        if taken is None:
            if must:
                name = sorted(missing)[0]
                raise _Bad(target, missing[name])
            return None
        made.missing.update(missing)
        made.attributes |= taken.attributes
        made.prefixes |= taken.prefixes
        for name in taken.names:
            found = self.forest.resolve(target.module, name)
            assert not isinstance(found, Missing | Alias), (target, name)
            part.names[name] = found
            if isinstance(found, Inside):
                self._add(made, found)
        return taken

    def _check(self, made: Slice) -> None:
        """Reject what would refuse on every call."""
        for owner in self.lineage.ancestors(made.root)[:1]:
            part = made.parts.get(owner)
            for name in ("__init__", "forward"):
                for piece in part.methods.get(name, []) if part else []:
                    if why := refuses_at_once(piece.text):
                        raise Rejected("needs what is not here", why)


def _called(text: str) -> list[str]:
    """Functions that statements call by name when they run."""
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return sorted({each.id for each in calls if isinstance(each, ast.Name)})


def stand_ins(made: Slice) -> list[str]:
    """The framework parts that a slice needs stand-ins for, those they need first."""
    found: list[str] = []

    def add(name: str) -> None:
        for each in seams.SOURCES[name].needs:
            add(each)
        if name not in found:
            found.append(name)

    for part in made.parts.values():
        for target in part.names.values():
            if isinstance(target, Seam):
                add(target.name)
    return found


def parse_head(text: str) -> tuple[list[ast.expr], list[ast.keyword], list[ast.expr]]:
    """Bases, keywords and decorators of a class from its piece."""
    call, marks = (cast(ast.Expr, each).value for each in ast.parse(text).body)
    assert isinstance(call, ast.Call)
    assert isinstance(marks, ast.List)
    return call.args, call.keywords, marks.elts
