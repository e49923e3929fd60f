"""Whole programs and diffs: the forms that every model is asked for."""

from difflib import SequenceMatcher
from itertools import pairwise

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Message
from kernelsmith.propose.header import body
from kernelsmith.propose.prompt import messages_of
from kernelsmith.propose.prompt_options import Form as ReplyForm
from kernelsmith.propose.prompt_options import PromptOptions
from kernelsmith.propose.reply import Unreadable, source_from
from kernelsmith.propose.reply_edits import apply, edits_of

_MOST_LINES_AROUND = 40


class Program:
    """The prompt of ``propose/prompt.py``, answered by a program or by edits of the parent's."""

    def __init__(self, options: PromptOptions) -> None:
        self._options = options
        self.name = options.form.value

    def at_hand(self, task: Task) -> bool:
        """All are."""
        return True

    def messages(self, brief: Brief) -> tuple[Message, ...]:
        """The evolution prompt."""
        return messages_of(brief, options=self._options)

    def answer(self, brief: Brief, source: str, note: str = "") -> str | None:
        """An idea, then the program or the edits; none where the reply would not read back."""
        idea = f"Idea: {note or 'a faster program'}"
        source = body(source)
        if brief.parent is None or self._options.form_for(brief) is ReplyForm.WHOLE:
            said = f"{idea}\n```python\n{source.rstrip()}\n```"
        else:
            edits = edits_between(body(brief.parent.candidate.source), source)
            if edits is None:
                return None
            said = f"{idea}\n{edits}"
        try:
            read = self.source(said, brief)
        except Unreadable:
            return None
        return said if body(read).strip() == source.strip() else None

    def source(self, reply: str, brief: Brief, *, cut_off: bool = False) -> str:
        """As replies of models are read."""
        return source_from(reply, brief, options=self._options, cut_off=cut_off)


def edits_between(old: str, new: str) -> str | None:
    """SEARCH/REPLACE blocks that turn ``old`` into ``new``, as short as uniqueness allows.

    None where nothing changes, or where no unique place can be quoted.
    """
    before, after = old.split("\n"), new.split("\n")
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    changes = [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
    if not changes:
        return None
    whole = (changes[0][0], changes[-1][1], changes[0][2], changes[-1][3])
    # Edits apply one after the other, so an earlier one can make a later one ambiguous: what was
    # written is tried out, and one block around all changes is the way out.
    for parts in (changes, [whole]):
        grown = _grown(parts, before)
        if grown is not None:
            said = "\n".join(_block(before[i1:i2], after[j1:j2]) for i1, i2, j1, j2 in grown)
            if _reads_back(said, old, new):
                return said
    return None


Change = tuple[int, int, int, int]


def _block(search: list[str], replace: list[str]) -> str:
    lines = ["<<<<<<< SEARCH", *search, "=======", *replace, ">>>>>>> REPLACE"]
    return "\n".join(lines)


def _reads_back(said: str, old: str, new: str) -> bool:
    try:
        return apply(edits_of(said), old) == new
    except Unreadable:
        return False


def _grown(changes: list[Change], before: list[str]) -> list[Change] | None:
    """Add lines around each change until its SEARCH text is unique; none where that fails."""
    found: list[Change] = []
    for i1, i2, j1, j2 in changes:
        floor = found[-1][1] if found else 0
        for _ in range(_MOST_LINES_AROUND):
            quoted = before[i1:i2]
            if any(line.strip() for line in quoted) and _count(before, quoted) == 1:
                break
            if i1 > floor:
                i1, j1 = i1 - 1, j1 - 1
            elif i2 < len(before):
                i2, j2 = i2 + 1, j2 + 1
            else:
                return None
        else:
            return None
        found.append((i1, i2, j1, j2))
    apart = all(one[1] <= other[0] for one, other in pairwise(found))
    return found if apart else None


def _count(lines: list[str], wanted: list[str]) -> int:
    size = len(wanted)
    return sum(lines[at : at + size] == wanted for at in range(len(lines) - size + 1))
