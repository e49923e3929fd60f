"""Names of a file that stand for one value, and those that may stand for several."""

import ast
from collections import Counter


def bound(node: ast.AST) -> set[str]:
    """Names that a piece of code may give another value."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store | ast.Del)


def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Values of names that the file sets once, and that nobody changes."""
    found: dict[str, ast.expr] = {}
    stores: Counter[str] = Counter()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Lambda):
            stores[getattr(node, "name", "")] += 1
            continue
        if isinstance(node, ast.Name) and _is_stored(node):
            stores[node.id] += 1
        waiting += ast.iter_child_nodes(node)
    for each in ast.walk(tree):
        if isinstance(each, ast.Global):
            stores.update(each.names)
    for each in tree.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if stores[name] == 1:
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if stores[name] == 1:
                    found[name] = value
    return found
