"""The pieces of a model's reply: what it thought, what it fenced, what it said."""

import re
from dataclasses import dataclass

_THOUGHT = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_THOUGHT_START = re.compile(r"<(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_MOST_FENCES = 48
"""Beyond that a reply is noise, and trying all pairs would take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Text between two fences, or from one to the end."""

    text: str
    closed: bool


def plain(reply: str) -> str:
    """With one kind of line end, without byte-order mark and NULs, and without what was thought."""
    text = reply.encode("utf-8", "replace").decode()  # half a surrogate pair is no text
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").lstrip("\ufeff")
    text = _THOUGHT.sub("", text)
    ends = list(_THOUGHT_END.finditer(text))
    return text[ends[-1].end() :] if ends else text  # templates often swallow the opening tag


def still_thinking(text: str) -> bool:
    """Whether a thought was begun and not ended."""
    return _THOUGHT_START.search(text) is not None


def blocks(text: str) -> list[Block]:
    """The fenced blocks as Markdown reads them, in order."""
    found: list[Block] = []
    opening: str | None = None
    inside: list[str] = []
    for line in text.split("\n"):
        match = _FENCE.fullmatch(line)
        if opening is None:
            if match:
                opening, inside = match["fence"], []
        elif match and not match["info"].strip() and match["fence"].startswith(opening):
            found.append(Block(text="\n".join(inside), closed=True))
            opening = None
        else:
            inside.append(line)
    if opening is not None:
        found.append(Block(text="\n".join(inside), closed=False))
    return found


def spans(text: str) -> list[str]:
    """All that lies between any two fences, and from any fence to the end, longest first.

    A docstring with a fence in it closes its block too early for Markdown; one of these has it.
    """
    lines = text.split("\n")
    at = [number for number, line in enumerate(lines) if _FENCE.fullmatch(line)][:_MOST_FENCES]
    ends = [*at, len(lines)]
    found = {"\n".join(lines[start + 1 : end]) for start in at for end in ends if end > start + 1}
    return sorted(found, key=lambda each: (-len(each), each))


def note_of(text: str) -> str:
    """The reply's own word on what it tried: its ``Idea:`` line, or the first line of prose."""
    inside = False
    prose: list[str] = []
    for line in text.split("\n"):
        if _FENCE.fullmatch(line):
            inside = not inside
        elif not inside and line.strip():
            prose.append(line.strip())
    ideas = [line for line in prose if re.match(r"\W*idea\b", line, re.IGNORECASE)]
    first = (ideas or prose or [""])[0]
    said = re.sub(r"^\W*idea\W*", "", first, flags=re.IGNORECASE).strip("*_ ")
    return " ".join(said.split())[:200]
