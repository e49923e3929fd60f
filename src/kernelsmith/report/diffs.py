"""What changed between two sources, as people read it."""

import difflib

_CONTEXT = 4


def unified(before: str, after: str, *, names: tuple[str, str] = ("before", "after")) -> str:
    """A unified diff; empty where nothing changed."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), *names, lineterm="", n=_CONTEXT
    )
    return "\n".join(lines)


def changed(diff: str) -> tuple[int, int]:
    """Lines added and removed."""
    lines = diff.splitlines()[2:]
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)
