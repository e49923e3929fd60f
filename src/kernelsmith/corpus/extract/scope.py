"""Which module-level names a piece of code uses, and where: scopes as Python has them."""

import ast
import builtins
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__class__"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True)
class Uses:
    """Names that are looked up in the module, with the nodes that do so, and attributes by name."""

    names: dict[str, list[ast.Name]] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)
    """Every ``x.attribute`` whatever ``x`` is, and texts that could be one (for ``getattr``)."""
    prefixes: set[str] = field(default_factory=set)
    """How names begin that are put together at run time: ``getattr(self, f'forward_{mode}')``."""

    def note(self, node: ast.Name) -> None:
        """Add one use."""
        self.names.setdefault(node.id, []).append(node)


def uses(*nodes: ast.AST) -> Uses:
    """Find what some statements or expressions at module level use of their module."""
    found = Uses()
    for node in nodes:
        _visit(node, frozenset(), found)
    return found


def bound_by(node: ast.AST) -> set[str]:
    """Names that a statement binds in its own scope, nested functions and classes left out."""
    names: set[str] = set()
    stack: list[ast.AST] = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Name):
            if not isinstance(each.ctx, ast.Load):
                names.add(each.id)
            continue
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(each.name)
            continue
        if isinstance(each, ast.Import | ast.ImportFrom):
            names |= {a.asname or a.name.partition(".")[0] for a in each.names}
            continue
        if (isinstance(each, ast.ExceptHandler) and each.name) or (
            isinstance(each, ast.MatchAs | ast.MatchStar) and each.name
        ):
            names.add(each.name)
        if not isinstance(each, ast.Lambda):
            stack.extend(ast.iter_child_nodes(each))
    return names


def _arguments(node: ast.arguments) -> set[str]:
    each = [*node.posonlyargs, *node.args, *node.kwonlyargs]
    each += [a for a in (node.vararg, node.kwarg) if a is not None]
    return {a.arg for a in each}


def _globals_in(body: list[ast.stmt]) -> set[str]:
    return {
        name for statement in body for node in ast.walk(statement)
        if isinstance(node, ast.Global) for name in node.names
    }  # fmt: skip


def _visit(node: ast.AST, local: frozenset[str], found: Uses) -> None:
    if isinstance(node, ast.Name):
        if node.id not in local and node.id not in BUILTINS:
            found.note(node)
        return
    if isinstance(node, ast.Attribute):
        found.attributes.add(node.attr)
        _visit(node.value, local, found)
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value.isidentifier():
            found.attributes.add(node.value)
        return
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
        if isinstance(first, ast.Constant) and len(str(first.value)) > 3:
            found.prefixes.add(str(first.value))
    if isinstance(node, _SCOPES):
        _function(node, local, found)
        return
    if isinstance(node, ast.ClassDef):
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            _visit(part, local, found)
        names = {name for statement in node.body for name in bound_by(statement)}
        for statement in node.body:
            # What a class binds is not seen by its methods, only by its own statements.
            inner = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            _visit(statement, local if inner else local | names, found)
        return
    if isinstance(node, _COMPREHENSIONS):
        inside = local | {n for g in node.generators for n in bound_by(g.target)}
        for child in ast.iter_child_nodes(node):
            _visit(child, inside, found)
        return
    for child in ast.iter_child_nodes(node):
        _visit(child, local, found)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, local: frozenset[str], found: Uses
) -> None:
    outer = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    names = _arguments(node.args)
    if isinstance(node, ast.Lambda):
        body: list[ast.AST] = [node.body]
    else:
        outer += node.decorator_list
        names |= {name for statement in node.body for name in bound_by(statement)}
        names -= _globals_in(node.body)
        body = list(node.body)
    for part in outer:
        _visit(part, local, found)
    for inner in body:
        _visit(inner, local | names, found)
