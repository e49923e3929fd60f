"""From domain values to versioned JSON and back, with nothing lost and nothing guessed."""

import dataclasses
import functools
import json
import types
import typing
from enum import StrEnum

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Timing
from kernelsmith.domain.trajectory import Brief, Proposal, Step

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

VERSION = 1
"""Raised when a reader of the old form would misread the new one, or the other way round.

A field added with a default raises nothing: lines without it load with the default, and an older
installation refuses lines with it instead of dropping what it does not know.
"""

Value = Task | Candidate | Device | Evaluation | Timing | Brief | Proposal | Step

_KINDS: dict[str, type] = {
    "task": Task,
    "candidate": Candidate,
    "device": Device,
    "evaluation": Evaluation,
    "timing": Timing,
    "brief": Brief,
    "proposal": Proposal,
    "step": Step,
}


def dumps(value: Value) -> str:
    """Write one value as a line of JSON that says what it is and in which version."""
    kind = next(kind for kind, known in _KINDS.items() if type(value) is known)
    body = encode(value)
    assert isinstance(body, dict)
    head: dict[str, Json] = {"schema": f"{kind}/{VERSION}"}
    return json.dumps(head | body, ensure_ascii=False, allow_nan=False)


def loads(text: str) -> Value:
    """Read what ``dumps`` wrote.

    Raises:
        ValueError: The text is not ours, of another version, or describes an impossible value.
    """
    body = json.loads(text)
    schema = body.pop("schema", None) if isinstance(body, dict) else None
    kind, _, version = str(schema).partition("/")
    if kind not in _KINDS:
        raise ValueError(f"not a Kernel-Smith value; expected a schema of {', '.join(_KINDS)}")
    if version != str(VERSION):
        raise ValueError(f"written as version {version}; this installation reads version {VERSION}")
    value = decode(body, _KINDS[kind])
    assert isinstance(value, Value)
    return value


def encode(value: object) -> Json:
    """Turn a value into what JSON has, without a schema; for formats that bring their own."""
    kind: type = type(value)
    if kind in _PLAIN:
        return typing.cast(Json, value)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if names := field_names(kind):
        return {name: encode(getattr(value, name)) for name in names}
    raise TypeError(f"no JSON form for {kind.__name__}")


_PLAIN = frozenset({type(None), bool, int, float, str})


@functools.cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass in order; none for anything else."""
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple(each.name for each in dataclasses.fields(kind))


def decode(value: object, kind: type) -> object:
    """Undo ``encode``; what is of its kind already, inside too, is taken as it is.

    Raises:
        ValueError: It does not describe a value of this kind.
    """
    return _decode(value, kind)


@functools.cache
def _hints(kind: type) -> dict[str, typing.Any]:
    return typing.get_type_hints(kind)


@functools.cache
def _required(kind: type) -> frozenset[str]:
    assert dataclasses.is_dataclass(kind)
    never = dataclasses.MISSING
    return frozenset(
        each.name
        for each in dataclasses.fields(kind)
        if each.default is never and each.default_factory is never
    )


def _decode(value: object, kind: typing.Any) -> object:
    kind = getattr(kind, "__supertype__", kind)  # a NewType is its base at run time
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if type(value) is kind:
            return value
        if not isinstance(value, dict):
            raise ValueError(f"a {kind.__name__} is an object; got {value!r}")
        hints = _hints(kind)
        if unknown := set(value) - set(hints):
            raise ValueError(f"a {kind.__name__} has no field {', '.join(sorted(unknown))}")
        if missing := _required(kind) - set(value):
            raise ValueError(f"a {kind.__name__} needs the field {', '.join(sorted(missing))}")
        return kind(**{key: _decode(item, hints[key]) for key, item in value.items()})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(str(value))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return _decode_tuple(value, arguments)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(value, arguments)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is type(None) and value is None:
        return None
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise ValueError(f"expected {getattr(kind, '__name__', kind)}; got {value!r}")


def _decode_tuple(value: object, arguments: tuple[typing.Any, ...]) -> object:
    if not isinstance(value, list):
        raise ValueError(f"expected a list; got {value!r}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(item, arguments[0]) for item in value)
    if len(arguments) != len(value):
        raise ValueError(f"expected {len(arguments)} items; got {value!r}")
    return tuple(_decode(item, kind) for item, kind in zip(value, arguments, strict=True))


def _decode_union(value: object, arguments: tuple[typing.Any, ...]) -> object:
    if value is None and type(None) in arguments:
        return None
    reasons = []
    for kind in arguments:
        try:
            return _decode(value, kind)
        except ValueError as error:
            reasons.append(str(error))
    raise ValueError(f"{value!r} fits none of the known forms: {'; '.join(reasons)}")
