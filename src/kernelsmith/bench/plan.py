"""A plan: what a bench does, written down so that it can be taken up again and compared."""

import fnmatch
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelsmith.bench.compiled import MODES
from kernelsmith.bench.entrant import FIXED, SEARCH, Entrant, distinct
from kernelsmith.bench.final import Exam
from kernelsmith.bench.job import Job
from kernelsmith.bench.record import BASELINES, Record, Rules
from kernelsmith.bench.suite import Absent, Entry, Suite, settled
from kernelsmith.domain.codec import decode, encode
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.here import runs_on_gpu
from kernelsmith.evaluate.tasks import fitting
from kernelsmith.run.best import replace_file
from kernelsmith.run.config import RunConfig, dump_config, parse_config

FILE = "bench.json"
SCHEMA = "bench-plan/1"
PAPER_TESTS = 100
_FREE = ("workers", "devices", "evaluators", "max_usd", "max_seconds")
"""What may change when a bench is taken up again: the numbers do not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that decides what the table says, and how much may be spent on it."""

    suite: str
    """As ``open_suite`` takes it; its path is a whole one."""
    entrants: tuple[Entrant, ...]
    config: str
    """The searches' configuration, TOML: backend, budget per task, policy, efforts."""
    samples: int = 1
    """Runs per task, with seeds of their own."""
    seed: int = 0
    baselines: tuple[str, ...] = ("eager",)
    tests: int = 0
    """Fresh process pairs that each winner is judged by; 0: until the interval is narrow."""
    effort: str = "thorough"
    """Of the last judgement."""
    preset: str = ""
    only: tuple[str, ...] = ()
    """Ids, or patterns of ids, or their last parts."""
    levels: tuple[str, ...] = ()
    limit: int | None = None
    """The first tasks of what is left."""
    sample: int | None = None
    """Tasks per level, spread evenly, always the same ones."""
    workers: int = 1
    devices: tuple[str, ...] = ()
    """A worker for each, as ``CUDA_VISIBLE_DEVICES`` names them."""
    evaluators: tuple[str, ...] = ()
    """Who judges instead of this machine; a worker for each at least."""
    max_usd: float | None = None
    """For the whole bench: no job is begun once it is spent."""
    max_seconds: float | None = None
    """Of this session: no job is begun afterwards, and what is under way is finished."""

    def __post_init__(self) -> None:
        distinct(self.entrants)
        for name in self.baselines:
            if name not in BASELINES:
                raise UsageError(f"no baseline {name!r}; known are {', '.join(BASELINES)}")
        if len(set(self.baselines)) != len(self.baselines) or not self.baselines:
            raise UsageError("name each baseline once, and at least one")
        if self.evaluators:
            self._check_elsewhere()
        if self.samples < 1 or self.workers < 1 or self.tests < 0:
            raise UsageError("samples and workers are at least 1, tests not negative")
        for name in ("limit", "sample", "max_usd", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name} is above 0 or left out; got {value}")

    def _check_elsewhere(self) -> None:
        """See to it that nothing needs this machine."""
        compiled = {each.kind for each in self.entrants} | set(self.baselines)
        if here := sorted(compiled & set(MODES)):
            raise UsageError(
                f"{here[0]} runs torch.compile, which an evaluator does not let candidates do; "
                "it is judged on a machine of your own, without --evaluator"
            )
        if self.devices:
            raise UsageError("--devices are this machine's; an evaluator has its own")
        if len(set(self.evaluators)) != len(self.evaluators):
            raise UsageError("name each evaluator once; --jobs says how many tasks at a time")
        if any(each.startswith("ray") for each in self.evaluators) and (
            len(self.evaluators) > 1 or self.workers > 1
        ):
            raise UsageError(
                "one job at a time has a cluster to itself; for several, share it: "
                "kernelsmith serve --ray, and --evaluator http://HOST:PORT"
            )

    @property
    def run_config(self) -> RunConfig:
        """The searches' configuration."""
        return parse_config(self.config)

    def save(self, folder: Path) -> None:
        """Write it down, or make sure that it is what was begun here.

        Raises:
            UsageError: Another bench was begun in this folder, or it cannot be written.
        """
        path = folder / FILE
        if path.exists() and (said := differences(load(folder), self)):
            raise UsageError(
                f"{folder} holds another bench: {said}; use another --out, or go on with what "
                f"was begun: kernelsmith bench --resume {folder}"
            )
        body = encode(self)
        assert isinstance(body, dict)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, json.dumps({"schema": SCHEMA, **body}, indent=1) + "\n")
        except OSError as error:
            raise UsageError(f"cannot write {folder}: {error.strerror}") from error


def load(folder: Path) -> Plan:
    """Read the plan of a bench.

    Raises:
        UsageError: There is none, or it is not ours.
    """
    path = folder / FILE
    try:
        body = json.loads(path.read_text())
        if body.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        plan = decode(body, Plan)
    except OSError as error:
        raise UsageError(f"no bench in {str(folder)!r}: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} is not a bench's plan: {error}") from error
    assert isinstance(plan, Plan)
    return plan


def differences(one: Plan, other: Plan) -> str:
    """Say where two plans would give other numbers; empty where they would not."""
    found = []
    one, other = _settled(one), _settled(other)
    for name in Plan.__dataclass_fields__:
        before, now = getattr(one, name), getattr(other, name)
        if name in _FREE or before == now:
            continue
        if name == "entrants":
            before, now = ([each.name for each in each_side] for each_side in (before, now))
        shown = f" ({before!r}, now {now!r})"
        if name == "config":
            shown = _in_config(before, now)
        found.append(f"its {name} differ{'s' if name in ('suite', 'config') else ''}{shown}")
    return "; ".join(found)


def _settled(plan: Plan) -> Plan:
    """As it is made today: plans of before may hold paths from where they were made."""
    entrants = tuple(
        replace(each, runs=str(Path(each.runs).resolve())) if each.runs else each
        for each in plan.entrants
    )
    return replace(plan, suite=settled(plan.suite), entrants=entrants)


def _in_config(before: str, now: str) -> str:
    """Name what two configurations say differently."""
    try:
        one, other = (dict(_leaves(tomllib.loads(text))) for text in (before, now))
    except ValueError:  # a file that was edited
        return ""
    said = [
        f"{key} ({one.get(key)!r}, now {other.get(key)!r})"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]
    return f" in {', '.join(said)}" if said else ""


def _leaves(table: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def chosen(plan: Plan, suite: Suite) -> tuple[list[Entry], list[Absent]]:
    """The entries that a plan is about, and those that are not to be had.

    Raises:
        UsageError: Nothing fits what was asked for.
    """
    entries: list[Entry] = []
    absent: list[Absent] = []
    seen: list[Entry | Absent] = []
    for each in suite.entries():
        if not names(plan.only, each.id):
            continue
        seen.append(each)
        if not is_of_level(each, plan.levels):
            continue
        if isinstance(each, Entry):
            entries.append(each)
        elif plan.limit is None or plan.sample is not None or len(entries) < plan.limit:
            absent.append(each)
    refuse_unmatched(plan.only, [each.id for each in seen], plan.suite)
    refuse_other_levels(plan.levels, seen, plan.suite)
    if plan.sample is not None:
        entries = list(_spread(entries, plan.sample))
    entries = entries[: plan.limit]
    if not entries:
        why = f"; {absent[0].id}: {absent[0].reason}" if absent else ""
        raise UsageError(f"no task of {plan.suite} fits what was asked for{why}")
    return entries, absent


def jobs_of(
    plan: Plan, suite: Suite, entries: Sequence[Entry], home: Path, *, gpu: bool | None = None
) -> Iterator[Job]:
    """Task by task, so that an unfinished bench has comparable rows; fixed entrants have a seed.

    ``gpu`` says whether tasks are judged on one; asked of this machine where absent.
    """
    config = plan.run_config
    if gpu is None:
        gpu = runs_on_gpu(config.backend)
    exam = Exam(
        backend=config.backend, effort=plan.effort, tests=plan.tests, baselines=plan.baselines,
        timeout_s=config.timeout_s,
    )  # fmt: skip
    for entry in entries:
        task = entry.task if config.backend == "null" else fitting(entry.task, gpu=gpu)
        for number in range(plan.samples):
            for entrant in plan.entrants:
                if entrant.kind in FIXED and number:
                    continue
                seed = plan.seed + number if entrant.kind == SEARCH else number
                own = _own_config(config, entrant, seed)
                yield Job(
                    entrant=entrant.name, kind=entrant.kind, runs=entrant.runs, entry=entry.id,
                    suite=suite.name, level=entry.level, category=entry.category,
                    family=entry.family, dtype=entry.dtype, note=entry.note, task=task,
                    seed=seed, sample=number, config=dump_config(own),
                    rules=_rules(plan, own, entrant), exam=exam, home=str(home.resolve()),
                )  # fmt: skip


def _own_config(config: RunConfig, entrant: Entrant, seed: int) -> RunConfig:
    if entrant.proposer is None:
        return replace(config, seed=seed)
    search = replace(config.search, policy=entrant.policy) if entrant.policy else config.search
    return replace(config, seed=seed, proposer=entrant.proposer, search=search)


def _rules(plan: Plan, config: RunConfig, entrant: Entrant) -> Rules:
    searches = entrant.kind == SEARCH
    budget = config.budget
    return Rules(
        steps=budget.steps if searches else 0,
        policy=config.search.policy if searches else "",
        early_stop=budget.stale_steps if searches else None,
        seconds=budget.seconds if searches else None,
        tokens=budget.tokens if searches else None,
        usd=budget.usd if searches else None,
        target=budget.target_speedup if searches else None,
        concurrency=config.concurrency if searches else None,
        search_effort=config.effort if searches else "",
        tests=plan.tests,
        effort=plan.effort,
        preset=plan.preset,
    )


def names(words: Sequence[str], id: str) -> bool:
    """Whether a task is among those that are named; without a word all are."""
    return not words or any(is_named(id, word) for word in words)


def is_named(id: str, word: str) -> bool:
    """Whether a word means a task: its id, the last part of it, a pattern, or what is above it."""
    whole = fnmatch.fnmatchcase(id, word) or fnmatch.fnmatchcase(id, f"*/{word}")
    return whole or id.startswith(f"{word.rstrip('/')}/")


def refuse_unmatched(words: Sequence[str], ids: Sequence[str], where: str) -> None:
    """See to it that every word means a task.

    Raises:
        UsageError: One means none.
    """
    for word in words:
        if not any(is_named(id, word) for id in ids):
            raise UsageError(f"no task of {where} is called {word!r}")


def refuse_other_levels(
    words: Sequence[str], seen: Sequence[Entry | Absent | Record], where: str
) -> None:
    """See to it that every word means a level.

    Raises:
        UsageError: One means none; the message names those that there are.
    """
    levels = dict.fromkeys(each.level for each in seen if each.level)
    for word in words:
        if not any(_is_level(level, word) for level in levels):
            known = f"there are {', '.join(sorted(levels))}" if levels else "it has no levels"
            raise UsageError(f"no task of {where} is of level {word!r}; {known}")


def is_of_level(each: Entry | Absent | Record, words: Sequence[str]) -> bool:
    """Whether a task is of a level that is named; without a word all are.

    What is absent may not say its level; it is listed rather than lost.
    """
    unsaid = isinstance(each, Absent) and not each.level
    return not words or unsaid or any(_is_level(each.level, word) for word in words)


def _is_level(level: str, word: str) -> bool:
    return word in (level, level.rpartition(" ")[2])


def _spread(entries: Sequence[Entry], count: int) -> Iterator[Entry]:
    levels: dict[str, list[Entry]] = {}
    for entry in entries:
        levels.setdefault(entry.level, []).append(entry)
    for group in levels.values():
        few = min(count, len(group))
        yield from (group[index * len(group) // few] for index in range(few))
