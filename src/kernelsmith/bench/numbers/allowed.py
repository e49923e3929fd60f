"""What each system was allowed, in words, and in what two systems were not allowed the same."""

from collections import Counter
from collections.abc import Sequence

from kernelsmith.bench.record import Record, Rules

_SEARCH = (
    "steps",
    "concurrency",
    "search_effort",
    "early_stop",
    "seconds",
    "tokens",
    "usd",
    "target",
)
_END = ("tests", "effort")
_CUT = {"seconds": "time", "tokens": "tokens", "usd": "money"}
"""Ends of a search that say nothing of how good it could have become."""


def allowed(records: Sequence[Record]) -> str:
    """By which rules a system's records were made; several, where they were not all the same."""
    counts = Counter(_words(record.rules, searched=bool(record.points)) for record in records)
    said = [
        words if len(counts) == 1 else f"{words} ({count} records)"
        for words, count in counts.most_common()
    ]
    cut = Counter(_CUT[record.stop] for record in records if record.stop in _CUT)
    said += [f"{count} of {len(records)} searches ended for want of {why}"
             for why, count in sorted(cut.items())]  # fmt: skip
    return "; ".join(said)


def apart(one: Sequence[Record], other: Sequence[Record]) -> str:
    """In what two systems were not allowed the same; empty where they were.

    The policy is not among it: whoever compares two of them says so by their names. A search and
    what needs none are alike in how their winners are judged only.
    """
    rules = [{record.rules for record in records} for records in (one, other)]
    searched = all(each.steps for side in rules for each in side)
    said = []
    for name in (*_SEARCH, *_END) if searched else _END:
        values = [sorted({_value(getattr(each, name)) for each in side}) for side in rules]
        if values[0] != values[1]:
            label = name.replace("_", " ")
            said.append(f"{label} {' and '.join(values[0])} against {' and '.join(values[1])}")
    return ", ".join(said)


def _value(value: object) -> str:
    return "unlimited" if value is None else str(value) or "unknown"


def _words(rules: Rules, *, searched: bool) -> str:
    parts = []
    if rules.steps:
        parts.append(f"{rules.steps} steps{f' ({rules.policy})' if rules.policy else ''}")
        parts += [f"{rules.concurrency} in flight"] if rules.concurrency else []
        parts += [f"judged at {rules.search_effort}"] if rules.search_effort else []
        parts += [f"ended after {rules.early_stop} without a new best"] if rules.early_stop else []
        parts += [f"{rules.seconds:g} s a run"] if rules.seconds is not None else []
        parts += [f"{rules.tokens:,} tokens a run"] if rules.tokens is not None else []
        parts += [f"${rules.usd:g} a run"] if rules.usd is not None else []
        parts += [f"ended at {rules.target:g} times"] if rules.target is not None else []
    else:
        parts.append("recorded runs" if searched else "no search")
    tests = f", by {rules.tests} tests" if rules.tests else ""
    return f"{', '.join(parts)}; winners judged at {rules.effort}{tests}"
