"""What a name in a candidate's source stands for, as far as reading can tell."""

import ast
from collections.abc import Iterator

_BUILTINS = (
    "exec", "eval", "compile", "__import__", "getattr", "setattr", "delattr", "vars",
    "__builtins__",
)  # fmt: skip
_IMPORTERS = ("builtins.__import__", "importlib.import_module", "importlib.__import__")


class Names:
    """Resolves expressions to dotted names through imports, assignments and constant strings.

    Scopes are ignored: a name that stands for a module anywhere stands for it everywhere.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._aliases: dict[str, str] = {}
        self._stars: list[str] = []
        self._bound: set[str] = set(_bound(tree))
        for node in ast.walk(tree):
            self._learn_import(node)
        # An alias may be used above the line that makes it, so look until nothing new is found.
        known = -1
        while known != len(self._aliases):
            known = len(self._aliases)
            for target, value in _assignments(tree):
                dotted = self.dotted(value)
                if dotted is not None and target not in self._aliases:
                    self._aliases[target] = dotted

    def _learn_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                whole = each.name if each.asname else each.name.split(".")[0]
                self._aliases[each.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                if each.name == "*":
                    self._stars.append(node.module or "")
                else:
                    self._aliases[each.asname or each.name] = f"{node.module or ''}.{each.name}"

    def dotted(self, node: ast.AST) -> str | None:
        """Return the dotted name that an expression stands for, or none when it is not one."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._member(node.value, node.attr)
        if isinstance(node, ast.Subscript):
            holder = self._namespace(node.value)
            key = constant(node.slice)
            return self._member(holder, key) if holder is not None and key is not None else None
        if isinstance(node, ast.NamedExpr):
            return self.dotted(node.value)
        if isinstance(node, ast.Call) and node.args:
            function = self.dotted(node.func)
            if function in _IMPORTERS:
                return constant(node.args[0])
            if function == "builtins.getattr" and len(node.args) > 1:
                key = constant(node.args[1])
                return self._member(node.args[0], key) if key is not None else None
        return None

    def _name(self, name: str) -> str | None:
        if name in self._aliases:
            return self._aliases[name]
        if name in self._bound:
            return None
        if name in _BUILTINS:
            return f"builtins.{name}".removesuffix(".__builtins__")
        return f"{self._stars[0]}.{name}" if self._stars else None

    def _member(self, holder: ast.AST, key: str) -> str | None:
        base = self.dotted(holder)
        return f"{base}.{key}" if base is not None else None

    def _namespace(self, node: ast.AST) -> ast.AST | None:
        """Return x for ``x.__dict__`` and ``vars(x)``."""
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return node.value
        if isinstance(node, ast.Call) and self.dotted(node.func) == "builtins.vars" and node.args:
            return node.args[0]
        return None


def constant(node: ast.AST) -> str | None:
    """Return the text that an expression of constants makes, or none when it is not one."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = constant(node.left), constant(node.right)
        return left + right if left is not None and right is not None else None
    if isinstance(node, ast.JoinedStr):
        parts = [constant(each) for each in node.values]
        return "".join(each for each in parts if each is not None) if None not in parts else None
    if isinstance(node, ast.FormattedValue):
        return constant(node.value)
    return None


def _assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr | ast.AnnAssign) and node.value is not None:
            yield from _pairs(node.target, node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for each, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(each, part)


def _bound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
