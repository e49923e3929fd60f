"""Texts and values that a journal stores once and refers to by the hash of their content."""

import hashlib
import json
import typing
from collections.abc import Mapping
from enum import StrEnum

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import Json, decode, field_names
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal

SHARED: Mapping[str, type] = {
    "candidate": Candidate,
    "device": Device,
    "evaluation": Evaluation,
    "proposal": Proposal,
    "task": Task,
}
"""Values that many lines have in common; every other value is written where it stands."""

_KIND_OF = {kind: name for name, kind in SHARED.items()}
_PLAIN = frozenset({type(None), bool, int, float})
_SHORT = 80
"""Characters up to which a text is not worth a reference."""
_KEPT = 4096
"""Values whose hash is remembered: the elites that briefs show again and again."""


def line(content: Mapping[str, Json]) -> bytes:
    """One line of a journal; a text that UTF-8 cannot hold is escaped."""
    return _utf8(_json(content), content)


def _json(content: Json | Mapping[str, Json]) -> str:
    return json.dumps(content, ensure_ascii=False)


def _utf8(text: str, content: Json | Mapping[str, Json]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(content).encode()


def hashed(content: bytes) -> str:
    """The name of a text or value: 128 bits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:32]


class Packer:
    """Turns values into JSON with references, and says which lines must stand before them."""

    def __init__(self) -> None:
        self._written: set[bytes] = set()
        self._recent: dict[int, tuple[object, str]] = {}
        self._lines: list[bytes] = []

    def remember(self, name: str) -> None:
        """Take note that the journal holds this text or value already."""
        self._written.add(bytes.fromhex(name))

    def pack(self, value: object) -> tuple[list[bytes], Json]:
        """Give the lines that ``value`` refers to and are not written yet, then its JSON."""
        self._lines = []
        return self._lines, self._packed(value)

    def _packed(self, value: object) -> Json:
        kind: type = type(value)
        if kind in _PLAIN:
            return typing.cast(Json, value)
        if kind is str:
            text = typing.cast(str, value)
            return text if len(text) <= _SHORT else {"text": self._text(text)}
        if kind is tuple:
            items = typing.cast(tuple[object, ...], value)
            if items and type(items[0]) is float:  # samples: many, and never anything else
                return typing.cast(Json, list(items))
            return [self._packed(item) for item in items]
        if kind in _KIND_OF:
            return {"value": self._value(value, _KIND_OF[kind])}
        if isinstance(value, StrEnum):
            return value.value
        return self._fields(value, kind)

    def _fields(self, value: object, kind: type) -> dict[str, Json]:
        names = field_names(kind)
        assert names, f"no JSON form for {kind.__name__}"
        found: dict[str, Json] = {}
        for name in names:
            item = getattr(value, name)
            # Most fields are plain or empty: a call for each would cost more than all the rest.
            if type(item) in _PLAIN:
                found[name] = item
            else:
                found[name] = self._packed(item) if item != () else []
        return found

    def _text(self, text: str) -> str:
        name = hashed(text.encode("utf-8", "surrogatepass"))
        if self._is_new(name):
            body = _utf8(_json(text), text)
            self._lines.append(b'{"text": "%b", "body": %b}' % (name.encode(), body))
        return name

    def _value(self, value: object, kind: str) -> str:
        # By identity: the same objects come again in every brief, and comparing is not free.
        if known := self._recent.get(id(value)):
            return known[1]
        packed = self._fields(value, type(value))
        body = _utf8(_json(packed), packed)
        name = hashed(kind.encode() + body)
        if self._is_new(name):
            says = (name.encode(), kind.encode(), body)
            self._lines.append(b'{"value": "%b", "kind": "%b", "body": %b}' % says)
        if len(self._recent) >= _KEPT:
            del self._recent[next(iter(self._recent))]
        self._recent[id(value)] = (value, name)
        return name

    def _is_new(self, name: str) -> bool:
        before = len(self._written)
        self._written.add(bytes.fromhex(name))
        return len(self._written) > before


class Unpacker:
    """Puts texts and values back in the place of their references."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._values: dict[str, object] = {}

    def take(self, content: Mapping[str, object]) -> bool:
        """Keep the text or value of a line; false where the line is of another sort."""
        if "text" in content:
            self._texts[str(content["text"])] = str(content["body"])
            return True
        if "value" in content:
            kind = str(content["kind"])
            if kind not in SHARED:
                raise ValueError(f"no kind of value {kind!r}")
            value = decode(self.plain(content["body"]), SHARED[kind])
            self._values[str(content["value"])] = value
            return True
        return False

    def plain(self, packed: object) -> object:
        """Undo ``Packer.pack``; shared values come as values, the rest as JSON to be decoded."""
        if isinstance(packed, dict):
            if len(packed) == 1:
                if "text" in packed:
                    return self._texts[str(packed["text"])]
                if "value" in packed:
                    return self._values[str(packed["value"])]
            return {key: self.plain(item) for key, item in packed.items()}
        if isinstance(packed, list):
            return [self.plain(item) for item in packed]
        return packed
