"""One definition taken apart into pieces that can be kept or left out: methods, fields, a body."""

import ast
import re
from dataclasses import dataclass, field

from kernelsmith.corpus.extract import seams
from kernelsmith.corpus.extract.clean import Unsafe, cleaned, dotted
from kernelsmith.corpus.extract.forest import (
    Alias,
    Forest,
    Inside,
    Missing,
    Outside,
    Parsed,
    Target,
)
from kernelsmith.corpus.extract.guard import guarded
from kernelsmith.corpus.extract.scope import BUILTINS, Uses, bound_by, uses

_VALUES = tuple((re.compile(f"^({pattern})$"), value) for pattern, value in seams.VALUES)


@dataclass(slots=True)
class Piece:
    """Code that is kept or left out as a whole."""

    text: str
    names: frozenset[str]
    attributes: frozenset[str]
    prefixes: frozenset[str]
    eager: frozenset[str]
    """Names that are looked up while the module loads, not only when something is called."""
    is_function: bool = False
    _variants: dict[frozenset[str], "Piece | None"] = field(default_factory=dict)

    def without(self, missing: dict[str, str]) -> "Piece | None":
        """The same with a refusal wherever a missing name is used; none where that cannot be."""
        key = frozenset(missing) & self.names
        if not key:
            return self
        if key not in self._variants:
            self._variants[key] = self._guarded({name: missing[name] for name in key})
        return self._variants[key]

    def _guarded(self, missing: dict[str, str]) -> "Piece | None":
        if not self.is_function:
            return None
        (node,) = ast.parse(self.text).body
        assert isinstance(node, ast.FunctionDef)
        found = guarded(node, missing)
        if found is None:
            return None
        made = make_piece([found])
        # A local name whose assignment became a refusal is still a local name.
        made.names &= self.names - set(missing)
        made.eager &= made.names
        return made

    def renamed(self, names: dict[str, str]) -> str:
        """The text with module-level names replaced."""
        if not any(name in self.names for name in names):
            return self.text
        tree = ast.parse(self.text)
        for name, nodes in uses(*tree.body).names.items():
            for node in nodes:
                node.id = names.get(name, name)
        return ast.unparse(tree)


@dataclass(slots=True)
class Definition:
    """What a harvested name stands for, in pieces."""

    module: str
    name: str
    kind: str
    """``class``, ``function`` or ``value``."""
    body: Piece
    """The statements; of a class, its bases and keywords as a call, its decorators as a list."""
    methods: dict[str, list[Piece]] = field(default_factory=dict)
    fields: dict[str, Piece] = field(default_factory=dict)
    decorated: bool = False
    keeps_all: bool = False
    dropped: tuple[str, ...] = ()


def make_piece(nodes: list[ast.stmt], *, eager: bool = False) -> Piece:
    """Describe cleaned statements."""
    found = uses(*nodes)
    only = len(nodes) == 1 and isinstance(nodes[0], ast.FunctionDef)
    return Piece(
        text="\n".join(ast.unparse(node) for node in nodes),
        names=frozenset(found.names),
        attributes=frozenset(found.attributes),
        prefixes=frozenset(found.prefixes),
        eager=frozenset(_eager(nodes).names) if only and not eager else frozenset(found.names),
        is_function=only,
    )


def _eager(nodes: list[ast.stmt]) -> Uses:
    parts: list[ast.AST] = []
    for node in nodes:
        assert isinstance(node, ast.FunctionDef)
        parts += [*node.decorator_list, *node.args.defaults]
        parts += [each for each in node.args.kw_defaults if each is not None]
    return uses(*parts)


class _Rewriter(ast.NodeTransformer):
    """Replaces what can be known from a file's imports: modules' attributes, numpy, questions."""

    def __init__(self, forest: Forest, parsed: Parsed, found: Uses) -> None:
        self.forest, self.parsed = forest, parsed
        self.ours = {id(node) for nodes in found.names.values() for node in nodes}

    def _is_global(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and id(node) in self.ours

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Answer questions about the surroundings."""
        answer = self._answer(node.func)
        if answer is not None:
            return answer
        return self.generic_visit(node)

    def _answer(self, function: ast.expr) -> ast.expr | None:
        name = dotted(function)
        last = name.rpartition(".")[2]
        if not name or name.startswith(("self.", "torch.")):
            return None
        for pattern, value in _VALUES:
            if pattern.match(last) and not last.isupper():
                return ast.Constant(value == "True")
        return None

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Answer questions that are constants."""
        if isinstance(node.ctx, ast.Load) and self._is_global(node) and node.id.isupper():
            for pattern, value in _VALUES:
                if pattern.match(node.id):
                    return ast.Constant(value == "True")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Follow ``module.name`` into harvested modules, and numpy to its plain counterpart."""
        parts = dotted(node).split(".")
        head: ast.AST = node
        while isinstance(head, ast.Attribute):
            head = head.value
        if len(parts) < 2 or not isinstance(head, ast.Name) or not self._is_global(head):
            return self.generic_visit(node)
        target = self.forest.resolve(self.parsed.dotted, parts[0])
        if isinstance(target, Missing) and target.what == "numpy" and len(parts) == 2:
            return self._numpy(node, parts[1])
        used = 1
        while isinstance(target, Alias) and used < len(parts):
            target = self.forest.attribute(target.module, parts[used])
            used += 1
        if used == 1:
            return node
        made = "_".join(parts[:used])
        while made in self.parsed.bindings:
            made += "_"
        self.parsed.synthetic[made] = target
        found: ast.expr = ast.Name(made, ast.Load())
        for part in parts[used:]:
            found = ast.Attribute(found, part, ast.Load())
        return found

    def _numpy(self, node: ast.Attribute, name: str) -> ast.AST:
        plain = seams.NUMPY.get(name)
        if plain is None:
            return node
        top = plain.partition(".")[0]
        if "." in plain and top not in self.parsed.bindings:
            self.parsed.synthetic[top] = Outside(top)
        return ast.parse(plain, mode="eval").body


class _Inner(ast.NodeTransformer):
    """Imports inside functions become names of the module, to be followed as all others are."""

    def __init__(self, forest: Forest, parsed: Parsed) -> None:
        self.forest, self.parsed = forest, parsed

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """Take an import out of a function."""
        module = self.parsed.absolute(node)
        for alias in node.names:
            if alias.name != "*":
                target = self.forest.attribute(module, alias.name)
                self._bind(alias.asname or alias.name, target)
        return ast.Pass()

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        """Take an import out of a function."""
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._bind(name, self.forest.module(alias.name if alias.asname else name))
        return ast.Pass()

    def _bind(self, name: str, target: Target) -> None:
        if name not in self.parsed.bindings:
            self.parsed.synthetic[name] = target


def statements_of(parsed: Parsed, name: str) -> list[ast.stmt]:
    """The statements that make up one definition: the last of its kind, or all assignments."""
    options = [(s, c) for s, c in parsed.bindings.get(name, ())
               if not isinstance(s, ast.Import | ast.ImportFrom)]  # fmt: skip
    plain = [s for s, c in options if not c]
    plain = plain or [s for s, _ in sorted(options, key=lambda pair: pair[1])][:1]
    defined = [s for s in plain if isinstance(s, ast.ClassDef | ast.FunctionDef)]
    if defined:
        return [defined[-1]]
    return plain


def define(forest: Forest, target: Inside) -> Definition:
    """Take one definition apart.

    Raises:
        Unsafe: It holds what cannot be made plain.
    """
    parsed = forest.parse(target.module)
    assert parsed is not None
    nodes = statements_of(parsed, target.name)
    if not nodes or any(isinstance(node, ast.AsyncFunctionDef) for node in nodes):
        raise Unsafe(f"{target.name} is bound in a way that cannot be followed")
    dropped: list[str] = []
    kept: list[ast.stmt] = []
    for node in nodes:
        plain, gone = cleaned(node)
        dropped += gone
        if plain is not None:
            plain = _Inner(forest, parsed).visit(plain)
        if plain is not None:
            found = _Rewriter(forest, parsed, uses(plain)).visit(plain)
            kept.append(found)
    first = kept[0] if kept else None
    if isinstance(first, ast.ClassDef):
        return _class(target, first, tuple(dropped))
    if isinstance(first, ast.FunctionDef):
        return Definition(target.module, target.name, "function", make_piece([first]),
                          dropped=tuple(dropped))  # fmt: skip
    logger = _logger(kept)
    if logger is not None:
        kept = [logger]
        if "logging" not in parsed.bindings:
            parsed.synthetic["logging"] = Outside("logging")
        parsed.synthetic["_std_logging"] = Outside("logging")
    if not kept:
        raise Unsafe(f"{target.name} has no value")
    return Definition(target.module, target.name, "value", make_piece(kept, eager=True))


def _logger(nodes: list[ast.stmt]) -> ast.stmt | None:
    """A framework's logger becomes the standard library's."""
    if len(nodes) != 1 or not isinstance(nodes[0], ast.Assign):
        return None
    if re.search(r"get_?logger$", dotted(nodes[0].value), re.IGNORECASE):
        nodes[0].value = ast.parse("_std_logging.getLogger(__name__)", mode="eval").body
        return nodes[0]
    return None


def _class(target: Inside, node: ast.ClassDef, dropped: tuple[str, ...]) -> Definition:
    head = ast.Expr(ast.Call(ast.Name("type", ast.Load()), list(node.bases), list(node.keywords)))
    marks = ast.Expr(ast.List(list(node.decorator_list), ast.Load()))
    made = Definition(
        target.module, target.name, "class", make_piece([head, marks], eager=True),
        dropped=dropped, decorated=bool(node.decorator_list),
    )  # fmt: skip
    words = [dotted(each) for each in (*node.decorator_list, *node.bases)]
    made.keeps_all = made.decorated or any(
        word.rpartition(".")[2] in ("NamedTuple", "Enum", "IntEnum", "StrEnum", "TypedDict")
        for word in words
    )
    own = {name for statement in node.body for name in bound_by(statement)}
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.FunctionDef):
            made.methods.setdefault(statement.name, []).append(make_piece([statement]))
        elif not isinstance(statement, ast.Pass):
            piece = make_piece([statement], eager=True)
            piece.attributes |= piece.names & own
            piece.names -= own
            piece.eager -= own
            names = bound_by(statement) or {f"#{index}"}
            for name in names:
                made.fields[f"{name}#{index}" if name in made.fields else name] = piece
    return made


__all__ = ["BUILTINS", "Definition", "Piece", "define", "make_piece", "statements_of"]
