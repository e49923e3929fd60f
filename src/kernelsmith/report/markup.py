"""HTML and SVG as text that is escaped unless it was made here."""

import html
import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BIDIRECTIONAL = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_VOID = {"br", "meta", "link", "hr"}


class Markup(str):
    """Text that is HTML already. Plain text is not, and is escaped where it is put in."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Make text from anywhere harmless: no tags, no control characters, no change of direction."""
    if isinstance(text, Markup):
        return text
    visible = _BIDIRECTIONAL.sub("\ufffd", _UNPRINTABLE.sub("\ufffd", text))
    return Markup(html.escape(visible, quote=True))


def joined(*parts: str) -> Markup:
    """Put parts one after the other."""
    return Markup("".join(escaped(part) for part in parts))


def tag(name: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """One element. ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``.

    An attribute that is ``None`` or ``False`` is left out; numbers lose digits nobody can see.
    """
    said = "".join(
        f" {key.rstrip('_').replace('_', '-')}{_value(value)}"
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{joined(*children)}</{name}>")


def number(value: float) -> str:
    """A coordinate with one digit after the point at most."""
    return f"{value:.1f}".removesuffix(".0")


def _value(value: str | float | bool) -> str:
    if value is True:
        return ""
    return f'="{number(value) if isinstance(value, int | float) else escaped(value)}"'
