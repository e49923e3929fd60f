"""What a constructor sets, and what it changes afterwards."""

import ast
from collections import Counter

from kernelsmith.propose.rules.graph import NotRecognised


def attributes(constructor: ast.FunctionDef | None) -> dict[str, ast.expr]:
    """What ``self.name`` is set to; a name set twice is not known, nor a layer changed later."""
    found: dict[str, ast.expr] = {}
    unknown = set[str]()
    stores: Counter[str] = Counter()
    for node in ast.walk(constructor) if constructor else ():
        unknown |= _changed_later(node)
        name: str | None = None
        value: ast.expr | None = None
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr, ctx=ast.Store()):
                stores[attr] += 1
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)]):
                name, value = attr, node.value
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=attr)):
                name, value = attr, node.value
            case ast.Call(args=[ast.Constant(value=str() as attr), made, *_]):
                if ast.unparse(node.func) == "self.register_buffer":
                    stores[attr] += 1
                    name, value = attr, ast.Call(func=node.func, args=[made], keywords=[])
        if name is not None and value is not None:
            found[name] = value
    if _ALL in unknown:
        return {}
    return {
        name: value
        for name, value in found.items()
        if stores[name] == 1
        and name not in unknown
        and not (_ANY in unknown and isinstance(value, ast.Call))
    }


def check_told(path: str, made: ast.expr) -> None:
    """Refuse what is a tensor or a layer in one case and something else in another.

    Raises:
        NotRecognised: ``nn.Parameter(...) if bias else None``, and the like.
    """
    if isinstance(made, ast.IfExp | ast.BoolOp) and any(
        isinstance(each, ast.Call) for each in ast.walk(made)
    ):
        raise NotRecognised(f"rules cannot tell which of two values {path} has")


_ANY, _ALL = "*", "**"
"""Some layer, as in ``for each in self.modules(): each.eps = 1e-3``; whatever there is."""
_SETTING = ("setattr", "__setattr__", "__delattr__", "delattr")


def _changed_later(node: ast.AST) -> set[str]:
    """The name of which a part is set: ``self.conv.stride = 2``; weights may have other values."""
    match node:
        case ast.Attribute(attr="__dict__", value=ast.Name(id="self")):
            return {_ALL}
        case ast.Attribute(attr=attr, value=value, ctx=ast.Store() | ast.Del()):
            return _part(value, [attr])
        case ast.Call(func=ast.Name(id=name), args=[value, *_]) if name in _SETTING:
            return _part(value, [name]) or {_ALL}
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _SETTING:
            return _part(value, [name]) or {_ALL}
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name.startswith("register_"):
            return _part(value, [name])
        case ast.Call(func=func, args=[value, *_]) if "nn.utils." in ast.unparse(func):
            return _part(value, ["utils"])
    return set()


def _part(value: ast.expr, path: list[str]) -> set[str]:
    """Whose part it is that a path ends in; nobody's where it is a weight, or ``self`` has it."""
    if path[0] in ("weight", "data", "requires_grad"):
        return set()
    while isinstance(value, ast.Attribute | ast.Subscript):
        path += [value.attr] if isinstance(value, ast.Attribute) else []
        value = value.value
    if not isinstance(value, ast.Name):
        return set()
    if value.id != "self":
        return {_ANY}
    return {path[-1]} if len(path) > 1 else set()
