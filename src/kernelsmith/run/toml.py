"""Nested dataclasses from TOML tables and back, with mistakes named by their key."""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum

from kernelsmith.errors import SmithError, UsageError

T = typing.TypeVar("T")


def from_table(kind: type[T], table: Mapping[str, object], where: str = "") -> T:
    """Make a dataclass of a table.

    Raises:
        UsageError: A key is unknown, a value is of the wrong type, or the dataclass refuses it.
    """
    assert dataclasses.is_dataclass(kind)
    hints = typing.get_type_hints(kind)
    for key in table:
        if key not in hints:
            near = get_close_matches(key, hints, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(hints)}"
            raise UsageError(f"no setting {where + key!r}; {hint}")
    values = {key: _value(hints[key], item, where + key) for key, item in table.items()}
    try:
        return kind(**values)
    except SmithError as error:
        raise UsageError(f"{where.rstrip('.') or 'settings'}: {error}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where.rstrip('.') or 'settings'}: {error}") from error


def to_table(value: object) -> dict[str, object]:
    """Undo ``from_table``; what is absent (``None``) is left out, since TOML has no word for it."""
    assert dataclasses.is_dataclass(value)
    found: dict[str, object] = {}
    for each in dataclasses.fields(value):
        item = getattr(value, each.name)
        if item is not None:
            found[each.name] = _plain(item)
    return found


def to_toml(value: object) -> str:
    """Write a dataclass as a TOML file."""
    return "\n".join(_lines(to_table(value), ""))


def _value(kind: typing.Any, item: object, key: str) -> object:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(item, dict):
            raise UsageError(f"{key} is a table; got {item!r}")
        return from_table(kind, item, f"{key}.")
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (only,) = [each for each in arguments if each is not type(None)]
        return _value(only, item, key)
    if origin is tuple:
        if not isinstance(item, list | tuple):
            raise UsageError(f"{key} is a list; got {item!r}")
        return tuple(_value(arguments[0], each, f"{key}[{i}]") for i, each in enumerate(item))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if not isinstance(item, str) or item not in list(kind):
            raise UsageError(f"{key} is one of {', '.join(kind)}; got {item!r}")
        return kind(item)
    if kind is float and type(item) is int:
        return float(item)
    if type(item) is not kind:
        raise UsageError(f"{key} is {_said(kind)}; got {item!r}")
    return item


def _said(kind: type) -> str:
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    return names[kind]


def _plain(item: object) -> object:
    if dataclasses.is_dataclass(item):
        return to_table(item)
    if isinstance(item, tuple):
        return [_plain(each) for each in item]
    return item.value if isinstance(item, StrEnum) else item


def _lines(table: Mapping[str, object], where: str) -> list[str]:
    plain = {k: v for k, v in table.items() if not isinstance(v, dict) and not _is_tables(v)}
    found = [f"{key} = {_written(item)}" for key, item in plain.items()]
    for key, item in table.items():
        if isinstance(item, dict):
            found += ["", f"[{where}{key}]", *_lines(item, f"{where}{key}.")]
        elif _is_tables(item):
            assert isinstance(item, list)
            for each in item:
                found += ["", f"[[{where}{key}]]", *_lines(each, f"{where}{key}.")]
    return found if where else [*found, ""]


def _is_tables(item: object) -> bool:
    return isinstance(item, list) and bool(item) and all(isinstance(each, dict) for each in item)


def _written(item: object) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        # TOML's basic strings escape as JSON's do, and DEL too.
        return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(item, list):
        return f"[{', '.join(_written(each) for each in item)}]"
    return repr(item)
