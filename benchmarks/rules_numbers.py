"""Metrics over tasks, as the paper defines them, and some that it does not give.

``correctness``  share of tasks with a candidate that the judge passed
``fast1``        share of tasks whose best is faster than eager (``fast1_sure``: interval above 1)
``average``      mean ratio over all tasks; below 1, failed or not judged counts as 0
``geomean``      geometric mean; where nothing passed the user keeps eager, which is 1
``median``       of the same
``low, high``    of the geometric mean, 95 % of bootstraps over tasks
``half_width``   median over tasks of the interval of the ratio: half of it, by the ratio

Ratios are of device time (graphs on both sides); ``call`` holds the same over plain calls.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.rules_growth import BUDGETS, after, best_step, grown

Record = dict[str, Any]
Ratio = dict[str, float]
LEVELS = ("level1", "level2", "level3")
ON_A_PROCESSOR = "on a processor, in a plain process"
"""Why the compiler is not beside the judge's eager there."""
_DRAWS = 10_000
_NOT_AVERAGED = ("tasks", "low", "high")


def metrics(ratios: Sequence[Ratio | None]) -> dict[str, Any]:
    """The metrics over the ratios of some tasks; ``None`` where nothing passed."""
    passed = [each for each in ratios if each is not None]
    kept = [1.0 if each is None else each["ratio"] for each in ratios]
    if not ratios:
        return {"tasks": 0}
    return {
        "tasks": len(ratios),
        "correctness": len(passed) / len(ratios),
        "fast1": sum(each["ratio"] > 1 for each in passed) / len(ratios),
        "fast1_sure": sum(each["low"] > 1 for each in passed) / len(ratios),
        "average": sum(r for each in passed if (r := each["ratio"]) >= 1) / len(ratios),
        "geomean": math.exp(math.fsum(map(math.log, kept)) / len(kept)),
        "median": statistics.median(kept),
        **_bootstrapped(kept),
        "half_width": statistics.median(map(_half_width, passed)) if passed else None,
    }


def _half_width(ratio: Ratio) -> float:
    return (ratio["high"] - ratio["low"]) / 2 / ratio["ratio"]


def _bootstrapped(ratios: Sequence[float]) -> dict[str, float]:
    """Where the geometric mean of other tasks of the kind would lie; always the same draws."""
    logs = np.log(np.asarray(ratios))
    drawn = np.random.default_rng(0).choice(logs, (_DRAWS, len(logs))).mean(axis=1)
    low, high = np.exp(np.quantile(drawn, (0.025, 0.975)))
    return {"low": float(low), "high": float(high)}


def best(record: Record) -> Ratio | None:
    """The confirmed best, or the best step where the end was not reached; untimed is neither."""
    found = record.get("best")
    return dict(found) if found and "ratio" in found else best_within(record, None)


def best_within(record: Record, count: int | None) -> Ratio | None:
    """The best of the first steps."""
    at = best_step(record["steps"], count)
    return None if at is None else record["steps"][at]


def compiled(mode: str) -> Callable[[Record], Ratio | None]:
    """Eager over compiled."""

    def ratio(record: Record) -> Ratio | None:
        found = record["compile"].get(mode)
        return found if found is not None and "ratio" in found else None

    return ratio


def is_degenerate(record: Record) -> bool:
    """Whether the judge or the rules say that the task asks for less than it seems to."""
    seen = [*record["steps"], record.get("best") or {}]
    return any("degenerate" in each.get("labels", {}) for each in seen)


def groups(records: dict[str, Record]) -> dict[str, list[Record]]:
    """Records by level, and all of them."""
    found: dict[str, list[Record]] = {}
    for key, record in records.items():
        found.setdefault(key.partition("/")[0] if "/" in key else "tasks", []).append(record)
    return dict(sorted(found.items()))


def columns(records: Iterable[Record]) -> list[str]:
    """The compiler's modes that were measured."""
    return sorted({mode for record in records for mode in record["compile"]})


def summarise(records: dict[str, Record]) -> dict[str, Any]:
    """Everything that the tables show, by level and averaged over levels."""
    found: dict[str, Any] = {}
    ways: dict[str, Callable[[Record], Ratio | None]] = {}
    if not records or any(each["steps"] or "said" in each for each in records.values()):
        ways["rules"] = best  # else torch.compile alone was asked
    ways |= {f"compile {mode}": compiled(mode) for mode in columns(records.values())}
    for name, way in ways.items():
        found[name] = {
            "all": _by_level(records, way),
            "without degenerate": _by_level(
                {k: r for k, r in records.items() if not is_degenerate(r)}, way
            ),
        }
        timed = [ratio for each in records.values() if (ratio := way(each)) is not None]
        if timed and all(_call(each) for each in timed):  # a quick look leaves plain calls out
            found[name]["call"] = _by_level(records, lambda r, way=way: _call(way(r)))  # type: ignore[misc]
    found["degenerate"] = sorted(key for key, r in records.items() if is_degenerate(r))
    most = max((len(each["steps"]) for each in records.values()), default=0)
    found["evaluations"] = {
        str(count): _by_level(records, lambda r, c=count: best_within(r, c))  # type: ignore[misc]
        for count in sorted({*BUDGETS, most})
        if 0 < count <= most
    }
    twice = {key: each for key, each in records.items() if grown(each)}
    found["judged once more"] = {
        count: _by_level(twice, lambda r, c=int(count): after(r, c))  # type: ignore[misc]
        for count in found["evaluations"]
        if twice
    }
    found["wrong"] = _failures(records)
    found["stops"] = dict(Counter(each["stop"] for each in records.values() if "stop" in each))
    found["over compile"] = _over_compile(records)
    found["references"] = references(records)
    return found


def references(records: dict[str, Record]) -> dict[str, Any]:
    """References that the judge passed, and why others did not.

    Against themselves (``--reference``), or, in older records, as the candidate beside the
    compiler. On a processor nobody is asked so.
    """
    found = {
        key: _reference(record)
        for key, record in records.items()
        if record.get("reference") or not _is_of_a_processor(record)
    }
    passed = [each for each in found.values() if each.get("said") == "passed"]
    timed = [each for each in passed if "ratio" in each]
    return {
        "passed": len(passed),
        "timed": len(timed),
        "interval contains 1": sum(each["low"] <= 1 <= each["high"] for each in timed),
        "not": {
            key: records[key].get("left_out") or each.get("message") or "not judged"
            for key, each in found.items() if each.get("said") != "passed"
        },
    }  # fmt: skip


def _reference(record: Record) -> dict[str, Any]:
    """What the judge said of it; nothing where it was not asked."""
    if itself := record.get("reference"):
        return dict(itself)
    column = record["compile"].get("default") or {}
    if column.get("how") == "judge":
        return {"said": column["said"], "message": column["message"]}
    return {"message": column.get("why_plain", "")}


def _is_of_a_processor(record: Record) -> bool:
    return ON_A_PROCESSOR in (record["compile"].get("default") or {}).values()


def _over_compile(records: dict[str, Record]) -> dict[str, dict[str, Any]]:
    """The rules' ratio over the compiler's, task by task: a pair each, so tasks cancel out."""
    found: dict[str, dict[str, Any]] = {}
    for name, group in [*groups(records).items(), ("together", list(records.values()))]:
        pairs = [(best(each), compiled("default")(each)) for each in group]
        both = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
        if both:
            ratios = [ours["ratio"] / theirs["ratio"] for ours, theirs in both]
            found[name] = {
                "tasks": len(both),
                "geomean": math.exp(math.fsum(map(math.log, ratios)) / len(ratios)),
                **_bootstrapped(ratios),
                "surely ahead": sum(ours["low"] > theirs["high"] for ours, theirs in both),
                "surely behind": sum(ours["high"] < theirs["low"] for ours, theirs in both),
            }
    return found


def _call(ratio: Ratio | None) -> Ratio | None:
    found = ratio.get("call") if ratio is not None else None
    return found if isinstance(found, dict) else None


def _by_level(
    records: dict[str, Record], way: Callable[[Record], Ratio | None]
) -> dict[str, dict[str, Any]]:
    found = {
        name: metrics([way(each) for each in group]) for name, group in groups(records).items()
    }
    levels = [found[name] for name in LEVELS if name in found and found[name]["tasks"]]
    if len(levels) > 1:
        numbers = [name for name in levels[0] if name not in _NOT_AVERAGED]
        found["mean of levels"] = {"tasks": sum(each["tasks"] for each in levels)} | {
            name: statistics.mean(each[name] for each in levels)
            for name in numbers
            if all(each[name] is not None for each in levels)
        }
    return found


def _failures(records: dict[str, Record]) -> dict[str, int]:
    """How many steps came to which end but passing."""
    found: dict[str, int] = {}
    for record in records.values():
        for step in record["steps"]:
            if step["said"] != "passed":
                found[step["said"]] = found.get(step["said"], 0) + 1
    return found
