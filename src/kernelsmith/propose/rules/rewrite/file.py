"""The file around a rewritten body: the task's own, with another forward beside the written one."""

import ast
from collections.abc import Sequence

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.lineage import with_delegates
from kernelsmith.propose.rules.rewrite.graph import Value
from kernelsmith.propose.rules.rewrite.read import Traced
from kernelsmith.propose.rules.rewrite.write import literal

Branch = tuple[Traced, list[str]]


def write_file(
    source: str, entry: str, branches: Sequence[Branch], dtype: str | None = None
) -> str:
    """The task's file with another forward; the written one stays, for all other shapes.

    Args:
        source: The task's file.
        entry: ``Model``, or the task's function.
        branches: For each workload, what it was traced for and the body.
        dtype: Guard for this floating dtype instead of those traced.

    Raises:
        NotRecognised: The file has no plain forward to put another one beside.
    """
    if entry == "Model":
        source = with_delegates(source, entry)
    tree = ast.parse(source)
    lines = source.splitlines()
    if entry == "Model":
        owner = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
        methods = {n.name: n for c in owner[-1:] for n in c.body if isinstance(n, ast.FunctionDef)}
        old, constructor = methods.get("forward"), methods.get("__init__")
        taken = set(methods)
    else:
        found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == entry]
        old, constructor = (found[-1] if found else None), None
        taken = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    if old is None or old.decorator_list or taken & {"plain", "rewritten"}:
        raise NotRecognised("rules find no plain forward to rewrite")
    if old.args.vararg or old.args.kwarg or old.args.kwonlyargs or old.args.posonlyargs:
        raise NotRecognised("rules rewrite only forward methods with plain arguments")
    assert old.end_lineno is not None
    added = _forward(old, branches, entry, dtype, constructor)
    row = lines[old.lineno - 1]
    lines[old.lineno - 1] = row.replace(f"def {old.name}", "def plain", 1)
    lines[old.end_lineno : old.end_lineno] = ["", *added]
    if constructor is not None and branches[0][0].init:
        at = _after_super(constructor)
        indent = " " * (constructor.col_offset + 4)
        lines[at:at] = [indent + _configured(branches, constructor)]
    if not any(isinstance(n, ast.Import) and any(a.name == "torch" and not a.asname
               for a in n.names) for n in tree.body):  # fmt: skip
        first = tree.body[0]
        doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        at = (first.end_lineno or 0) if doc else first.lineno - 1
        if _has_future(tree):
            raise NotRecognised("rules find no place for an import")
        lines[at:at] = ["import torch"]
    return "\n".join(lines) + "\n"


def _has_future(tree: ast.Module) -> bool:
    return any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body)


def _after_super(constructor: ast.FunctionDef) -> int:
    """The line after ``super().__init__()`` where that comes first; else the first line."""
    body = constructor.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        body = body[1:]
    first = body[0]
    if "super(" in ast.unparse(first):
        assert first.end_lineno is not None
        return first.end_lineno
    return first.lineno - 1


def _configured(branches: Sequence[Branch], constructor: ast.FunctionDef) -> str:
    given = constructor.args
    if given.vararg or given.kwarg:
        raise NotRecognised("rules rewrite only constructors with plain arguments")
    known = list(dict.fromkeys(traced.init for traced, _ in branches))
    names = _tupled([name for name, _ in known[0]])
    values = [_tupled([_given(value) for _, value in each]) for each in known]
    if len(values) == 1:
        return f"self.as_traced = {names} == {values[0]}"
    return f"self.as_traced = {names} in ({', '.join(values)})"


def _given(value: Value) -> str:
    if isinstance(value, tuple):
        kind, *rest = value
        inner = [_given(each) for each in rest]
        return f"[{', '.join(inner)}]" if kind == "list" else _tupled(inner)
    return literal(value)


def _tupled(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _seen(traced: Traced, dtype: str | None) -> tuple[str, str]:
    """What is compared with what before the rewritten way is taken."""
    left, right = [], []
    for name, value, shape, kind in traced.arguments:
        left.append(name if shape is None else f"{name}.shape")
        right.append(_given(value) if shape is None else repr(tuple(shape)))
        if shape is not None:
            floating = kind.startswith(("float", "bfloat"))
            left.append(f"{name}.dtype")
            right.append(f"torch.{dtype if dtype and floating else kind}")
    return _tupled(left), _tupled(right)


def _forward(
    old: ast.FunctionDef, branches: Sequence[Branch], entry: str, dtype: str | None,
    constructor: ast.FunctionDef | None,
) -> list[str]:  # fmt: skip
    pad = " " * old.col_offset
    receiver = "self." if entry == "Model" else ""
    names = [each.arg for each in old.args.args]
    passed = ", ".join(names[1:] if entry == "Model" else names)
    configured = constructor is not None and bool(branches[0][0].init)
    groups: dict[tuple[str, ...], list[Traced]] = {}
    for traced, statements in branches:
        groups.setdefault(tuple(statements), []).append(traced)
    ready = "self.as_traced and " if configured else ""
    head = f"{pad}def {old.name}({ast.unparse(old.args)}):"
    fallback = f"return {receiver}plain({passed})"
    lines = [head]
    if len(groups) == 1:
        ((body, known),) = groups.items()
        lines += [f"{pad}    if not ({ready}{_guard(known, dtype)}):",
                  f"{pad}        {fallback}",
                  *[f"{pad}    {line}" for line in body]]  # fmt: skip
        return lines
    for body, known in groups.items():
        lines += [f"{pad}    if {ready}{_guard(known, dtype)}:",
                  *[f"{pad}        {line}" for line in body]]  # fmt: skip
    return [*lines, f"{pad}    {fallback}"]


def _guard(known: Sequence[Traced], dtype: str | None) -> str:
    tests = [_seen(each, dtype) for each in known]
    rights = list(dict.fromkeys(right for _, right in tests))
    left = tests[0][0]
    if len(rights) == 1:
        return f"{left} == {rights[0]}"
    return f"{left} in ({', '.join(rights)})"
