"""Where a tensor of a traced graph comes from, as Python inside ``forward``; the child's own."""

import ast
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch


def bound(
    function: Callable[..., object], args: list[Any], keywords: dict[str, Any]
) -> dict[str, object]:
    """Arguments of ``forward`` by name, with defaults."""
    found = inspect.signature(function).bind(*args, **keywords)
    found.apply_defaults()
    return dict(found.arguments)


def mapped(change: Callable[[object], object], value: object) -> Any:
    """The same containers around changed leaves."""
    if isinstance(value, dict):
        return {k: mapped(change, v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[mapped(change, v) for v in value])
    if isinstance(value, list | tuple):
        return type(value)(mapped(change, v) for v in value)
    return change(value)


def leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Everything inside containers, each with its path."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    else:
        yield path, value


def numbers(arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Arguments that are no tensors: the traced program holds for their values only."""
    for name, value in arguments.items():
        for path, leaf in leaves(value, name):
            if not isinstance(leaf, torch.Tensor):
                yield path, literal(leaf)


def literal(value: object) -> str:
    """A value as Python that a candidate may hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float | str | torch.dtype):
        return repr(value)
    if type(value) in (list, tuple):
        inner = ", ".join(literal(each) for each in value)  # type: ignore[attr-defined]
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"  # type: ignore[arg-type]
    if type(value) is dict:
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    raise ValueError(f"a {type(value).__name__} cannot be written into a candidate")


def given(constructor: Any, values: Any) -> list[tuple[str, str]]:
    """What a constructor is called with, by name; what cannot be written is left out."""
    if constructor.__init__ is torch.nn.Module.__init__:
        return []
    args, keywords = ([], values) if isinstance(values, dict) else (list(values), {})
    found = []
    for name, value in bound(constructor, args, keywords).items():
        try:
            found.append((name, literal(value)))
        except ValueError:
            continue
    return found


def of(node: Any, tensor: torch.Tensor, scope: Mapping[str, object]) -> str | None:
    """The path of a placeholder of dynamo's graph; checked, and searched for where it fails."""
    real = tensor
    held = node.meta.get("grapharg")
    source = getattr(held, "source", None)
    try:
        kept = held.example if held is not None else None
    except (AssertionError, AttributeError, ReferenceError):
        kept = None
    if isinstance(kept, torch.Tensor):
        real = kept
    name = getattr(source, "name", None)
    text = name() if callable(name) else name
    path = _path(text) if isinstance(text, str) else None
    if path is not None and _is(path, real, scope):
        return path
    return next((path for path, found in _known(scope) if _same(found, real)), None)


def _is(path: str, tensor: torch.Tensor, scope: Mapping[str, object]) -> bool:
    try:
        found = eval(path, {}, dict(scope))
    except (AttributeError, KeyError, IndexError, TypeError, NameError):
        return False
    return _same(found, tensor)


def _same(found: object, tensor: torch.Tensor) -> bool:
    if found is tensor:
        return True
    return (
        isinstance(found, torch.Tensor) and not _fake(tensor) and not _fake(found)
        and found.data_ptr() == tensor.data_ptr() and found.shape == tensor.shape
        and found.stride() == tensor.stride() and found.dtype == tensor.dtype
        and found.numel() > 0
    )  # fmt: skip


def _fake(tensor: torch.Tensor) -> bool:
    return type(tensor).__name__ == "FakeTensor" or tensor.device.type == "meta"


def _known(scope: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in scope.items():
        if name != "self":
            yield from leaves(value, name)
    model = scope.get("self")
    if isinstance(model, torch.nn.Module):
        for kind in (model.named_parameters, model.named_buffers):
            for name, value in kind(remove_duplicate=False):
                yield dotted(name, model), value


def dotted(name: str, model: object) -> str:
    """``net.0.weight`` as Python: ``self.net[0].weight``; by key where ``net`` is a dictionary."""
    text, owner = "self", model
    for part in name.split("."):
        named = isinstance(owner, torch.nn.ModuleDict | torch.nn.ParameterDict)
        if part.isidentifier():
            text += f".{part}"
        else:
            text += f"[{part!r}]" if named else f"[{part}]"
        owner = getattr(owner, part, None)
    return text


_TABLES = ("_modules", "_parameters", "_buffers", "__dict__")


def _path(text: str) -> str | None:
    """Dynamo's name of a source (``L['self']._modules['linear']``) as a person writes it."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return _plain(tree)


def _plain(node: ast.expr) -> str | None:
    match node:
        case ast.Subscript(value=ast.Name(id="L"), slice=ast.Constant(value=str() as name)):
            return name
        case ast.Subscript(
            value=ast.Attribute(value=inner, attr=table), slice=ast.Constant(value=str() as name)
        ) if table in _TABLES:
            base = _plain(inner)
            if base is None:
                return None
            if name.isidentifier():
                return f"{base}.{name}"
            return f"{base}[{name}]" if name.isdigit() else None
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            base = _plain(inner)
            return None if base is None else f"{base}[{key!r}]"
        case ast.Attribute(value=inner, attr=name):
            base = _plain(inner)
            return None if base is None else f"{base}.{name}"
    return None


def example(node: Any) -> object:
    """What a node of dynamo's graph would give."""
    return getattr(node, "meta", {}).get("example_value")


def template(value: object, outputs: list[torch.Tensor], given: Mapping[str, object]) -> str:
    """What ``forward`` returned, with the graph's results by number."""
    if isinstance(value, torch.Tensor):
        number = next((i for i, each in enumerate(outputs) if each is value), None)
        if number is not None:
            return f"{{{number}}}"
        path = next((p for p, found in _known(given) if found is value), None)
        if path is None:
            raise ValueError("a result is neither computed nor an input")
        return path
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        raise ValueError(f"forward returns a {type(value).__name__}")
    if isinstance(value, tuple | list):
        inner = ", ".join(template(each, outputs, given) for each in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        items = [f"{literal(k)}: {template(v, outputs, given)}" for k, v in value.items()]
        return "{{" + ", ".join(items) + "}}"
    return literal(value).replace("{", "{{").replace("}", "}}")
