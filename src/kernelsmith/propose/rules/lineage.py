"""Where a class of a task's file gets its methods from: its own body, or what it is built on.

A base that stands in the file is followed in Python's order of resolution. A base from elsewhere
(``torch.nn.GroupNorm``) is known by name only; ``torch.nn.Module`` itself brings nothing along.
"""

import ast
import copy
import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module

from kernelsmith.propose.rules.graph import NotRecognised

Order = tuple[ast.ClassDef | str, ...]
"""Classes in the order in which a method is looked for; by full name where not in the file."""

_EMPTY = {
    "object", "torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module",
    "abc.ABC", "typing.Generic", "typing.Protocol",
}  # fmt: skip
"""Bases that bring neither a forward nor a constructor with arguments."""


def imported(tree: ast.Module) -> dict[str, str]:
    """Names of imported things, in full: ``F`` is ``torch.nn.functional``."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.split(".")[0]
                found[each.asname or top] = each.name if each.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                found[each.asname or each.name] = f"{node.module}.{each.name}"
    return found


def class_of(tree: ast.Module, name: str) -> ast.ClassDef | None:
    """The class of that name; of several, the one that counts."""
    found = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    return found[-1] if found else None


def own_method(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """A method in the body of a class itself.

    Raises:
        NotRecognised: The class has something of that name that is no plain method.
    """
    found = [each for each in owner.body if name in _bound(each)]
    if not found:
        return None
    last = found[-1]
    if not isinstance(last, ast.FunctionDef):
        raise NotRecognised(f"rules do not know how {owner.name!r} makes its {name}")
    return last


def lineage(tree: ast.Module, name: str) -> Order:
    """A class of the file and all that it is built on, in the order of method resolution.

    Raises:
        NotRecognised: There is no such class, or the order cannot be told from the file.
    """
    order = _merged(tree, name, imported(tree), ())
    if len([each for each in order if isinstance(each, str)]) > 1:
        raise NotRecognised(f"rules cannot tell the order of the bases of {name!r}")
    return order


def inherited_method(order: Order, name: str) -> ast.FunctionDef | str | None:
    """A method by order of resolution; the full name of a class that is not in the file."""
    for each in order:
        found = each if isinstance(each, str) else own_method(each, name)
        if found is not None:
            return found
    return None


def delegates(
    tree: ast.Module, entry: str, names: Sequence[str] = ("__init__", "forward")
) -> list[ast.FunctionDef]:
    """Methods that a class lacks, each a call of the inherited one with the same arguments.

    Raises:
        NotRecognised: There is none to inherit, or its arguments cannot be told.
    """
    owner = class_of(tree, entry)
    if owner is None:
        raise NotRecognised(f"rules find no {entry!r} in the task")
    missing = [name for name in names if own_method(owner, name) is None]
    if not missing:
        return []
    order = lineage(tree, entry)
    if any(not isinstance(each, str) and own_method(each, "plain") for each in order):
        raise NotRecognised("the task has a method of its own that is called plain")
    made = []
    for name in missing:
        found = inherited_method(order, name)
        if found is None and name == "forward":
            raise NotRecognised(f"rules find no forward of {entry!r} in the task")
        if found is not None:
            args = _outside(found, name) if isinstance(found, str) else _bare(found.args)
            made.append(_delegate(name, args))
    return made


def with_delegates(source: str, entry: str) -> str:
    """A task's file whose class has a constructor and a forward of its own, inherited or not.

    Raises:
        NotRecognised: As ``delegates``.
    """
    tree = ast.parse(source)
    owner = class_of(tree, entry)
    made = delegates(tree, entry)
    if not made or owner is None:
        return source
    last = owner.body[-1]
    if last.lineno == owner.lineno:  # all on one line: there is no place to write to
        owner.body += made
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    lines = source.splitlines()
    pad = " " * owner.body[0].col_offset
    added = [f"{pad}{line}" for each in made for line in ("", *ast.unparse(each).splitlines())]
    lines[last.end_lineno : last.end_lineno] = [line.rstrip() for line in added]
    return "\n".join(lines) + "\n"


def passed(args: ast.arguments, *, method: bool) -> str:
    """Arguments of a function as it would hand them on to another of the same form."""
    plain = [each.arg for each in (*args.posonlyargs, *args.args)][1 if method else 0 :]
    plain += [f"*{args.vararg.arg}"] if args.vararg else []
    plain += [f"{each.arg}={each.arg}" for each in args.kwonlyargs]
    plain += [f"**{args.kwarg.arg}"] if args.kwarg else []
    return ", ".join(plain)


def _delegate(name: str, args: ast.arguments) -> ast.FunctionDef:
    back = "" if name == "__init__" else "return "
    call = f"{back}super().{name}({passed(args, method=True)})"
    made = ast.parse(f"def {name}({ast.unparse(args)}):\n    {call}").body[0]
    assert isinstance(made, ast.FunctionDef)
    return made


def _bare(args: ast.arguments) -> ast.arguments:
    """The same without annotations."""
    made = copy.deepcopy(args)
    for each in ast.walk(made):
        if isinstance(each, ast.arg):
            each.annotation = None
    return made


def _outside(owner: str, name: str) -> ast.arguments:
    """The arguments of a method of torch's own, which are not in the file."""
    if not owner.startswith("torch."):
        raise NotRecognised(f"rules find the {name} of the task in {owner}, not in its source")
    module, _, attribute = owner.rpartition(".")
    try:
        signature = inspect.signature(getattr(getattr(import_module(module), attribute), name))
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise NotRecognised(f"rules cannot tell the arguments of {owner}.{name}") from error
    shown = []
    for each in signature.parameters.values():
        if not (each.default is each.empty or isinstance(each.default, str | int | float | None)):
            raise NotRecognised(f"rules cannot write the defaults of {owner}.{name}")
        shown.append(each.replace(annotation=each.empty))
    text = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    made = ast.parse(f"def method{text}: pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    return made.args


def _merged(
    tree: ast.Module, name: str, aliases: Mapping[str, str], below: tuple[str, ...]
) -> Order:
    """Python's own linearisation, over the classes of the file and the names of others."""
    owner = class_of(tree, name)
    if owner is None or name in below:
        raise NotRecognised(f"rules cannot tell the order of the bases of {name!r}")
    inner = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    rows: list[list[ast.ClassDef | str]] = []
    direct: list[ast.ClassDef | str] = []
    for base in owner.bases:
        if isinstance(base, ast.Name) and base.id in inner:
            rows.append([*_merged(tree, base.id, aliases, (*below, name))])
            direct.append(rows[-1][0])
        elif (full := _full(base, aliases)) not in _EMPTY:
            rows.append([full])
            direct.append(full)
    rows.append(direct)
    order: list[ast.ClassDef | str] = [owner]
    while rows := [row for row in rows if row]:
        first = next((r[0] for r in rows if not any(r[0] in other[1:] for other in rows)), None)
        if first is None:
            raise NotRecognised(f"rules cannot tell the order of the bases of {name!r}")
        order.append(first)
        rows = [[each for each in row if each is not first and each != first] for row in rows]
    return tuple(order)


def _full(node: ast.expr, aliases: Mapping[str, str]) -> str:
    if isinstance(node, ast.Subscript):
        return _full(node.value, aliases)
    head, _, rest = ast.unparse(node).partition(".")
    full = aliases.get(head, head)
    return f"{full}.{rest}" if rest else full


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement of a class gives it."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.AnnAssign(value=None):
            return set()
    found = {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return found | {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
