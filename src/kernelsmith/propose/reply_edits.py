"""Edits in the diff form: SEARCH/REPLACE blocks, applied to a program exactly or not at all."""

import difflib
from dataclasses import dataclass

from kernelsmith.errors import SmithError

_SEARCH, _MIDDLE, _REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"


class Unreadable(SmithError, ValueError):
    """A reply holds no candidate; the text says why, for the next brief to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Whole lines, and what to put in their place."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def edits_of(text: str) -> tuple[Edit, ...]:
    """Read the blocks of a reply in order; none where there are none.

    Raises:
        Unreadable: A block is not finished, or has no SEARCH text.
    """
    found: list[Edit] = []
    search: list[str] = []
    replace: list[str] = []
    state = ""
    for line in text.split("\n"):
        mark = line.strip()
        if mark == _SEARCH:
            if state:
                raise Unreadable(f"edit {len(found) + 1} is not finished before the next begins")
            search, replace, state = [], [], "search"
        elif state == "search" and mark == _MIDDLE:
            state = "replace"
        elif state == "replace" and mark == _REPLACE:
            if not any(each.strip() for each in search):
                raise Unreadable(f"edit {len(found) + 1} has no SEARCH text")
            found.append(Edit(search=tuple(search), replace=tuple(replace)))
            state = ""
        elif state == "search":
            search.append(line)
        elif state == "replace":
            replace.append(line)
    if state:
        raise Unreadable(
            f"the reply was cut off inside edit {len(found) + 1}: it has no {_REPLACE!r} line"
        )
    return tuple(found)


def apply(edits: tuple[Edit, ...], source: str) -> str:
    """Replace each SEARCH text, which must stand in the program exactly once.

    Raises:
        Unreadable: An edit does not apply; the text says which, and what comes closest.
    """
    lines = source.split("\n")
    for number, edit in enumerate(edits, 1):
        size = len(edit.search)
        hits = [
            at for at in range(len(lines) - size + 1) if tuple(lines[at : at + size]) == edit.search
        ]
        if not hits:
            raise Unreadable(f"edit {number} does not apply: {_why_not(edit, lines)}")
        if len(hits) > 1:
            where = ", ".join(str(at + 1) for at in hits[:5])
            raise Unreadable(
                f"edit {number} is ambiguous: its SEARCH text stands at lines {where}; quote more "
                "lines around it"
            )
        lines[hits[0] : hits[0] + size] = edit.replace
    changed = "\n".join(lines)
    if changed == source:
        raise Unreadable("the edits change nothing")
    return changed


def _why_not(edit: Edit, lines: list[str]) -> str:
    """The first line of the SEARCH text that the program does not have, and the nearest to it."""
    known = set(lines)
    missing = next((line for line in edit.search if line not in known), None)
    if missing is None:
        return "the lines of its SEARCH text do not follow each other in the current program"
    said = f"the current program has no line {missing.strip()[:100]!r}"
    close = difflib.get_close_matches(missing, lines, n=1)
    return f"{said}; the nearest is {close[0].strip()[:100]!r}" if close else said
