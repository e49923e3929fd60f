"""A refusal in place of code that needs what cannot be had, so that all other paths still work."""

import ast

from kernelsmith.corpus.extract.scope import Uses, uses


def guarded(node: ast.FunctionDef, missing: dict[str, str]) -> ast.FunctionDef | None:
    """Rewrite a function in place; none where even defining it needs a missing name."""
    eager: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
    node.decorator_list = [d for d in node.decorator_list if not _needs(uses(d), missing)]
    if _needs(uses(*eager), missing):
        return None
    _Softener(uses(node), missing).visit(node)
    left = uses(node)
    bad = {id(n) for name in missing for n in left.names.get(name, ())}
    if bad:
        node.body = _block(node.body, bad, missing)
    return node


def refuses_at_once(text: str) -> str:
    """What a function refuses for on every call; empty where it may work."""
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    for statement in tree.body:
        if any(isinstance(each, ast.Return) for each in ast.walk(statement)):
            return ""
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            said = ast.unparse(statement.exc)
            return said if "needs " in said else ""
    return ""


def _needs(found: Uses, missing: dict[str, str]) -> bool:
    return any(name in missing for name in found.names)


class _Softener(ast.NodeTransformer):
    """``isinstance(x, Missing)`` is false: nobody here can make one."""

    def __init__(self, found: Uses, missing: dict[str, str]) -> None:
        self.bad = {id(n) for name in missing for n in found.names.get(name, ())}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Answer checks for missing types."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in ("isinstance", "issubclass"):
            return node
        if len(node.args) != 2:
            return node
        kinds = node.args[1]
        if self._bad(kinds):
            if isinstance(kinds, ast.Tuple):
                kept = [each for each in kinds.elts if not self._bad(each)]
                if kept:
                    return ast.Call(node.func, [node.args[0], ast.Tuple(kept, ast.Load())], [])
            return ast.Constant(False)
        return node

    def _bad(self, node: ast.AST) -> bool:
        return any(id(each) in self.bad for each in ast.walk(node))


def _block(body: list[ast.stmt], bad: set[int], missing: dict[str, str]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in body:
        found.append(_statement(statement, bad, missing))
    return found


def _first(node: ast.AST, bad: set[int]) -> str:
    return next((n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) in bad), "")


def _statement(node: ast.stmt, bad: set[int], missing: dict[str, str]) -> ast.stmt:
    if not _first(node, bad):
        return node
    blocks = [b for b in ("body", "orelse", "finalbody", "handlers") if getattr(node, b, None)]
    if isinstance(node, ast.Raise):
        return ast.Raise(_refusal("RuntimeError", "an error of a kind that is not here"), None)
    if not blocks or isinstance(node, ast.FunctionDef | ast.ClassDef):
        if isinstance(node, ast.FunctionDef):
            node.body = _block(node.body, bad, missing)
            if not _first(node, bad) or not _head(node, bad):
                return node
        name = _first(node, bad)
        return ast.Raise(_refusal("NotImplementedError", f"needs {missing.get(name, name)}"), None)
    if _head(node, bad):
        name = _first(node, bad)
        return ast.Raise(_refusal("NotImplementedError", f"needs {missing.get(name, name)}"), None)
    for block in blocks:
        inner = getattr(node, block)
        if block == "handlers":
            for handler in inner:
                if handler.type is not None and _first(handler.type, bad):
                    handler.type = ast.Name("RuntimeError", ast.Load())
                handler.body = _block(handler.body, bad, missing)
        else:
            setattr(node, block, _block(inner, bad, missing))
    return node


def _head(node: ast.stmt, bad: set[int]) -> bool:
    """Whether the part before the blocks needs something missing."""
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "finalbody", "handlers"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and _first(each, bad):
                return True
    return False


def _refusal(kind: str, text: str) -> ast.expr:
    return ast.Call(ast.Name(kind, ast.Load()), [ast.Constant(text)], [])
