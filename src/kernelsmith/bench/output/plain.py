"""Figures as plain JSON values: what has properties worth reading is given them too."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def plain(value: object) -> Json:
    """Turn frozen values into dictionaries; properties of theirs stand beside their fields."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.value if isinstance(value, Enum) else value
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
        names += [
            name
            for name, each in vars(type(value)).items()
            if isinstance(each, property) and not name.startswith("_")
        ]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    raise TypeError(f"no plain form of {type(value).__name__}")
