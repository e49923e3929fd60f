"""The winning kernel: how it differs from where it came from, and the whole of it."""

from collections.abc import Sequence

from kernelsmith.domain.trajectory import Step
from kernelsmith.report.diffs import changed, unified
from kernelsmith.report.markup import Markup, joined, tag
from kernelsmith.report.tables import folded

_MOST = 60_000
"""Characters of one source or diff; more is in ``best.py``."""


def winner(lineage: Sequence[Step]) -> Markup:
    """The last of a lineage: its diff to its parent, to the first of the line, and its source."""
    last = lineage[-1]
    assert last.candidate is not None
    parts: list[Markup] = []
    if len(lineage) > 1:
        parts.append(_difference(lineage[-2], last, "its parent", is_open=True))
    else:
        parts.append(tag("p", "It has no parent in this run: it was written from the reference."))
    if len(lineage) > 2:
        parts.append(_difference(lineage[0], last, "the first of its line", is_open=False))
    source = last.candidate.source
    parts.append(
        folded(
            f"source of {last.candidate.id}, {len(source.splitlines())} lines",
            tag("pre", tag("code", _cut(source))),
            is_open=len(lineage) == 1,
        )
    )
    return joined(*parts)


def coloured(diff: str) -> Markup:
    """A unified diff with its lines marked."""
    drawn = []
    for line in _cut(diff).split("\n"):
        style = {"+": "a", "-": "d", "@": "h"}.get(line[:1])
        if line.startswith(("+++", "---")):
            style = "h"
        drawn.append(tag("span", line, class_=style) if style else joined(line))
    return tag("pre", tag("code", joined(*(joined(line, "\n") for line in drawn))))


def _difference(before: Step, after: Step, what: str, *, is_open: bool) -> Markup:
    assert before.candidate is not None
    assert after.candidate is not None
    names = (f"step {before.brief.number}", f"step {after.brief.number}")
    diff = unified(before.candidate.source, after.candidate.source, names=names)
    added, removed = changed(diff)
    said = f"against {what} (step {before.brief.number}): +{added} -{removed} lines"
    return folded(said, coloured(diff), is_open=is_open)


def _cut(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if len(text) <= _MOST:
        return text
    return f"{text[:_MOST]}\n... {len(text) - _MOST:,} characters more; see best.py"
