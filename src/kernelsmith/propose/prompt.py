"""The evolution prompt: a brief becomes the messages that a model is sent.

The same brief and options give the same messages, byte for byte. What does not change within a run
(rules, notes, reference) comes first, so that servers can reuse their work on it.
"""

from collections.abc import Mapping

from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.trajectory import Brief, Exemplar, Message, Role
from kernelsmith.errors import UsageError
from kernelsmith.propose import hardware, prompt_feedback, prompt_rules
from kernelsmith.propose.header import body
from kernelsmith.propose.prompt_feedback import clip, fenced
from kernelsmith.propose.prompt_fit import Part, fitted
from kernelsmith.propose.prompt_options import Form, PromptOptions
from kernelsmith.propose.prompt_regions import regions_of
from kernelsmith.propose.tokens import count, count_messages

_LOG, _SHORT_LOG, _SHORTEST_LOG = 9_000, 2_400, 600
"""Characters of what the judge said of the current program, before and after cutting."""
_FAILURE_LOG, _SHORT_FAILURE_LOG = 1_500, 400
_OUTPUT = 2_000
_FEW_TIPS = 5


class TooLong(UsageError):
    """Not even the shortest prompt fits; the message says what it would take."""


def messages_of(brief: Brief, *, options: PromptOptions) -> tuple[Message, ...]:
    """Write the messages for one brief: one of the system, one of the user.

    Parts are cut until they fit ``options.budget_tokens``, the least useful first; the order is
    that of ``cuts_for``, told in ``docs/prompts.md``.

    Raises:
        TooLong: The reference (or a parent that must be shown) is too long for the budget.
    """
    system, user = _system_parts(brief, options), _user_parts(brief, options)

    def contents(chosen: Mapping[str, str]) -> tuple[str, str]:
        return _joined(system, chosen), _joined(user, chosen)

    def fits(chosen: Mapping[str, str]) -> bool:
        return count_messages(contents(chosen)) <= options.budget_tokens

    chosen = fitted([*system, *user], cuts_for(brief), fits)
    if chosen is None:
        least = {part.name: part.forms[-1] for part in (*system, *user)}
        raise TooLong(
            f"the shortest prompt for task {brief.task.name!r} takes about "
            f"{count_messages(contents(least))} tokens, and the budget is {options.budget_tokens}; "
            "allow more tokens, or shorten the task"
        )
    said, asked = contents(chosen)
    return Message(role="system", content=said), Message(role="user", content=asked)


def cuts_for(brief: Brief) -> tuple[str, ...]:
    """Name the parts to shorten, least useful first."""
    inspirations, failures = _inspirations(brief), _failures(brief)
    oldest_first = [f"failure {index}" for index in reversed(range(len(failures)))]
    worst_first = [f"inspiration {index}" for index in reversed(range(len(inspirations)))]
    roles = [each.role for each in reversed(inspirations)]
    but_best = list(zip(worst_first, roles, strict=True))[:-1]
    diverse = [name for name, role in but_best if role is not Role.TOP]
    top = [name for name, role in but_best if role is Role.TOP]
    return (
        "output",
        *oldest_first,  # their sources
        *diverse,  # their sources
        *oldest_first,  # half of their messages
        *oldest_first[:-1],  # all of it but the newest
        *top,  # sources of all but the best
        "tips",
        "tips",
        "measurements",  # the table of kernels
        "log",
        *worst_first,  # the best one's source, the others' metrics
        "log",
        *worst_first,
        *oldest_first,
        "parent",
    )


def _joined(parts: list[Part], chosen: Mapping[str, str]) -> str:
    return "\n\n".join(chosen[part.name] for part in parts if chosen[part.name])


def _system_parts(brief: Brief, options: PromptOptions) -> list[Part]:
    tips = (prompt_rules.tips(brief), prompt_rules.tips(brief, _FEW_TIPS), "")
    return [
        _fixed("objective", prompt_rules.objective(brief)),
        _fixed("language", prompt_rules.language(brief.backend)),
        _fixed("rules", f"## Rules\n{prompt_rules.rules(brief, options)}"),
        Part(name="tips", forms=tips),
    ]


def _user_parts(brief: Brief, options: PromptOptions) -> list[Part]:
    parts = [_fixed("task", _task(brief))]
    for index, each in enumerate(_inspirations(brief)):
        head = "" if index else "## Programs from the archive, best first\n\n"
        parts.append(_inspiration(f"inspiration {index}", each, brief, head))
    for index, each in enumerate(_failures(brief)):
        head = "" if index else "## Attempts that failed, newest first\n\n"
        parts.append(_failure(f"failure {index}", each, head))
    parts += _parent_parts(brief, options)
    parts.append(_fixed("form", prompt_rules.reply_form(brief, options)))
    return parts


def _fixed(name: str, text: str) -> Part:
    return Part(name=name, forms=(text,))


def _task(brief: Brief) -> str:
    task = brief.task
    lines = [
        f"## The reference: {task.name}",
        fenced(prompt_feedback.reference_of(task), "python"),
        "Workloads:",
        prompt_feedback.workloads_of(task),
    ]
    if task.structure:
        lines.append(f"The inputs are always: {', '.join(task.structure)}.")
    if facts := hardware.facts(brief.device):
        lines += ["Hardware:", *(f"- {fact}" for fact in facts)]
    return "\n".join(lines)


def _inspirations(brief: Brief) -> list[Exemplar]:
    """Each candidate once, and not the parent again."""
    seen = {brief.parent.candidate.id} if brief.parent is not None else set()
    return _once(brief.inspirations, seen)


def _failures(brief: Brief) -> list[Exemplar]:
    seen = {brief.parent.candidate.id} if brief.parent is not None else set()
    return _once(brief.failures, seen | {each.candidate.id for each in brief.inspirations})


def _once(exemplars: tuple[Exemplar, ...], seen: set[CandidateId]) -> list[Exemplar]:
    found = []
    known = set(seen)
    for each in exemplars:
        if each.candidate.id not in known:
            known.add(each.candidate.id)
            found.append(each)
    return found


def _inspiration(name: str, exemplar: Exemplar, brief: Brief, head: str) -> Part:
    """One from the archive; ``head`` stands over the first, which is the last to go."""
    kind = "one of the best" if exemplar.role is Role.TOP else "of another kind"
    head += (
        f"### Program {exemplar.candidate.id}, {kind} (score {exemplar.score:.4g})\n"
        f"{prompt_feedback.one_line(exemplar.evaluation, brief.task)}"
    )
    source = fenced(body(exemplar.candidate.source), "python")
    return Part(name=name, forms=(f"{head}\n{source}", head, ""))


def _failure(name: str, exemplar: Exemplar, head: str) -> Part:
    """One that failed; ``head`` stands over the newest, which is the last to go."""
    found = exemplar.evaluation
    head += f"### Program {exemplar.candidate.id}: {prompt_feedback.verdict(found)}"
    said = f"{head}\n{prompt_feedback.message_of(found, _FAILURE_LOG)}"
    short = f"{head}\n{prompt_feedback.message_of(found, _SHORT_FAILURE_LOG)}"
    source = fenced(body(exemplar.candidate.source), "python")
    return Part(name=name, forms=(f"{said}\n{source}", said, short, ""))


def _parent_parts(brief: Brief, options: PromptOptions) -> list[Part]:
    parent = brief.parent
    if parent is None:
        text = "## The current program\nThere is none yet: write the first one from the reference."
        return [
            _fixed("parent", text),
            *(_fixed(name, "") for name in ("log", "measurements", "output")),
        ]
    found = parent.evaluation
    said = f"### What the judge found\nverdict: {prompt_feedback.verdict(found)}"
    logs = [
        f"{said}\n{text}".rstrip()
        for text in (
            prompt_feedback.message_of(found, limit) for limit in (_LOG, _SHORT_LOG, _SHORTEST_LOG)
        )
    ]
    full = prompt_feedback.measurements(found, brief.task)
    brief_form = prompt_feedback.measurements(found, brief.task, detailed=False)
    printed = clip(found.output, _OUTPUT)
    output = f"It printed:\n{fenced(printed)}" if printed else ""
    return [
        Part(name="parent", forms=_parent_forms(parent, options)),
        Part(name="log", forms=tuple(logs)),
        Part(name="measurements", forms=(full, brief_form)),
        Part(name="output", forms=(output, "")),
    ]


def _parent_forms(parent: Exemplar, options: PromptOptions) -> tuple[str, ...]:
    source = body(parent.candidate.source)
    head = f"## The current program: {parent.candidate.id} (score {parent.score:.4g})"
    whole = f"{head}\nImprove this one.\n{fenced(source, 'python')}"
    regions = regions_of(source)
    if regions is not None and options.form is Form.WHOLE:
        return whole, (
            f"{head}\nImprove this one. Only what may be edited is shown; reply with these regions "
            f"alone, markers included.\n{fenced(regions.only_open(), 'python')}"
        )
    if options.form is Form.DIFF:
        return (whole,)
    return whole, (
        f"{head}\nIt is too long to be shown ({count(source)} tokens); write a new, shorter one."
    )
