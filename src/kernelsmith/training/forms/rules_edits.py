"""Typed edits of what the rules write: a family's parameters changed by name.

A candidate of the rules carries its choices in a header, and the same choices give the same text.
So a step between two of them is a few words (``rows=4 unroll=2``), legal by construction, and the
family writes the program. This is what a small model can learn; which choice gains is what it has
to find out.
"""

import re
from collections.abc import Callable
from threading import Lock

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Exemplar, Message
from kernelsmith.errors import UsageError
from kernelsmith.propose.header import header_of
from kernelsmith.propose.reply import Unreadable
from kernelsmith.propose.rules.families import Families, families_for, templates_only
from kernelsmith.propose.rules.family import Family
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.templates import BACKENDS
from kernelsmith.training.forms import short

_WORD = re.compile(r"^(\w+)=(\S+)$")
_MOST_TRIED = 4
_LONGEST = 64
"""Words of a reply that are read at all."""

Chosen = dict[str, str]
Find = Callable[[Task, str], Families]


class RulesEdits:
    """Edits of parameters, read against the families of the task.

    Args:
        backend: One that the rules write for.
        find: All families of a task; asks the compiler where the source alone is not enough.
    """

    name = "typed"

    def __init__(self, backend: str, find: Find = families_for) -> None:
        if backend not in BACKENDS:
            raise UsageError(
                f"typed edits change what the rules write, for {' and '.join(BACKENDS)}; "
                f"for {backend!r} use the form diff or whole"
            )
        self._backend, self._find = backend, find
        self._known: dict[tuple[Task, bool], Families] = {}
        self._finding: dict[Task, Lock] = {}
        self._lock = Lock()

    def at_hand(self, task: Task) -> bool:
        """Whether its families are read from the source; else the compiler is asked for them."""
        return bool(self._families(task, thorough=False).members)

    def messages(self, brief: Brief) -> tuple[Message, ...]:
        """Task, the parent's family and choices, what there is to choose, what was tried."""
        parent = brief.parent
        said = header_of(parent.candidate.source) if parent is not None else None
        if parent is None or said is None:
            names = " ".join(each.space.template for each in self._read(brief.task))
            there = f"families {names}" if names else ""
            return short.asked(short.about(brief), "no program yet", there)
        family, chosen = said
        choices = " ".join(f"{name}={value}" for name, value in chosen.items())
        tried = [
            self._tried(each, family, chosen) for each in (*brief.inspirations, *brief.failures)
        ]
        lines = [each for each in dict.fromkeys(tried) if each][:_MOST_TRIED]
        return short.asked(
            short.about(brief), f"program {family} {choices}",
            f"speed {short.worth(parent.evaluation)}", self._choices(brief.task, family), *lines,
        )  # fmt: skip

    def answer(self, brief: Brief, source: str, note: str = "") -> str | None:
        """The choices that differ from the parent's; with the family where that changes."""
        del note
        said = header_of(source)
        if said is None:
            return None
        family, chosen = said
        old = header_of(brief.parent.candidate.source) if brief.parent is not None else None
        if old is not None and old[0] == family:
            changed = {name: value for name, value in chosen.items() if old[1].get(name) != value}
            return _words(changed) if changed else None
        # Only what is unusual is said where the source alone tells what is usual; the compiler is
        # not asked for that, it would take half a minute a task.
        defaults = self._defaults(brief.task, family)
        unusual = {name: value for name, value in chosen.items() if defaults.get(name) != value}
        return f"family={family} {_words(unusual)}".strip()

    def source(self, reply: str, brief: Brief, *, cut_off: bool = False) -> str:
        """Apply the edits to the parent's choices, and have the family write them."""
        wanted, edits = _words_of(reply, cut_off=cut_off)
        parent = brief.parent
        old = header_of(parent.candidate.source) if parent is not None else None
        name = wanted or (old[0] if old is not None else None)
        if name is None:
            raise Unreadable("there is no program to edit yet; begin with family=NAME")
        family = self._family(brief, name)
        stays = old is not None and old[0] == name
        chosen = dict(old[1]) if stays and old is not None else dict(family.space.defaults)
        known = {each.name: each.choices for each in family.space.parameters}
        for key, value in edits.items():
            if key not in known:
                raise Unreadable(f"family {name} has no {key}; it has {', '.join(known)}")
            if value not in known[key]:
                raise Unreadable(f"{key} has no choice {value}; it has {', '.join(known[key])}")
            chosen[key] = value
        if stays and old is not None and chosen == old[1]:
            raise Unreadable("the edits change nothing")
        try:
            return family.source({name: chosen[name] for name in known})
        except (NotRecognised, KeyError) as error:
            raise Unreadable(f"this choice cannot be written: {error}") from error

    def _tried(self, exemplar: Exemplar, family: str, chosen: Chosen) -> str:
        said = header_of(exemplar.candidate.source)
        if said is None:
            return ""
        if said[0] != family:
            return f"tried family={said[0]} {short.worth(exemplar.evaluation)}"
        changed = {name: value for name, value in said[1].items() if chosen.get(name) != value}
        return f"tried {_words(changed)} {short.worth(exemplar.evaluation)}" if changed else ""

    def _defaults(self, task: Task, name: str) -> Chosen:
        for each in self._read(task):
            if each.space.template == name:
                return each.space.defaults
        return {}

    def _choices(self, task: Task, name: str) -> str:
        """What the parameters of a family may be, where the source alone tells."""
        for each in self._read(task):
            if each.space.template == name:
                many = [one for one in each.space.parameters if len(one.choices) > 1]
                return "may be " + " ".join(f"{one.name}={'|'.join(one.choices)}" for one in many)
        return ""

    def _family(self, brief: Brief, name: str) -> Family:
        """Of what the source alone tells, else of everything; the compiler takes its time.

        It is not asked for a name out of thin air, which would cost half a minute a task: only
        where the source tells nothing, or where the brief shows a program of that family.
        """
        read = self._read(brief.task)
        shown = (brief.parent, *brief.inspirations, *brief.failures)
        seen = [header_of(each.candidate.source) for each in shown if each is not None]
        is_seen = any(each is not None and each[0] == name for each in seen)
        found = [*read]
        if not read or (is_seen and all(each.space.template != name for each in read)):
            found += self._families(brief.task, thorough=True).members
        for each in found:
            if each.space.template == name:
                return each
        names = ", ".join(dict.fromkeys(each.space.template for each in found))
        raise Unreadable(f"no family {name} for this task; there are {names or 'none'}")

    def _read(self, task: Task) -> tuple[Family, ...]:
        """Families that the source alone tells."""
        return self._families(task, thorough=False).members

    def _families(self, task: Task, *, thorough: bool) -> Families:
        with self._lock:
            finding = self._finding.setdefault(task, Lock())
        with finding:  # others ask about other tasks meanwhile
            key = (task, thorough)
            if key not in self._known:
                find = self._find if thorough else templates_only
                self._known[key] = find(task, self._backend)
            return self._known[key]


def _words(chosen: Chosen) -> str:
    return " ".join(f"{name}={value}" for name, value in chosen.items())


def _words_of(reply: str, *, cut_off: bool) -> tuple[str | None, Chosen]:
    if cut_off:
        raise Unreadable("the reply was cut off; an edit is a few words")
    words = reply.split()
    if not words:
        raise Unreadable("the reply is empty")
    if len(words) > _LONGEST:
        raise Unreadable(f"an edit is a few words; this reply has {len(words)}")
    edits: Chosen = {}
    family: str | None = None
    for word in words:
        found = _WORD.match(word)
        if found is None:
            raise Unreadable(f"not an edit: {word[:40]!r}; write name=value")
        if found[1] in edits or (found[1] == "family" and family is not None):
            raise Unreadable(f"{found[1]} is given twice")
        if found[1] == "family":
            family = found[2]
        else:
            edits[found[1]] = found[2]
    return family, edits
