"""All stages one after the other, timed, each picking up where it left off."""

import json
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelsmith.corpus.classify import classify
from kernelsmith.corpus.cluster import cluster
from kernelsmith.corpus.deduplicate.deduplicate import deduplicate
from kernelsmith.corpus.extract.extract import extract
from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.publish import publish
from kernelsmith.corpus.run.runner import run
from kernelsmith.corpus.store import STAGES, Store

TIMES = "times.json"
_RESUMED = ("harvest", "extract", "run")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may choose."""

    processes: int = 2
    licences: tuple[str, ...] = ("any",)
    quality: int = 0
    """Signs of quality, of six, that a source must show."""
    operators: bool = False
    against: tuple[str, ...] = ("builtin",)
    embedding: str = "tfidf"
    most: int | None = None
    """At most this many modules are run."""
    count: int | None = None
    """At most this many are published, balanced over families."""
    synthetic: int = 0
    seed: int = 0
    sources: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Shown:
    """How progress is told: a line of text, and a bar with a count and a remark."""

    say: Say
    bar: Callable[[str, int, int, str], None]


def stage(store: Store, name: str, options: Options, shown: Shown, out: Path | None = None) -> None:
    """Run one stage and note how long it took, and over how many."""
    began, cpu = time.monotonic(), _cpu()
    before = _count(store, name) if name in _RESUMED else 0
    if name == "harvest":
        harvest(store, options.sources, licences=options.licences, say=shown.say,
                least_quality=options.quality)  # fmt: skip
    elif name == "extract":
        extract(
            store, processes=options.processes, operators=options.operators,
            progress=lambda done, total, found, kept: shown.bar(
                "extract", done, total, f"{kept} of {found} modules"),
        )  # fmt: skip
    elif name == "run":
        run(
            store, processes=options.processes, most=options.most,
            progress=lambda done, total, kept: shown.bar("run", done, total, f"{kept} run"),
        )  # fmt: skip
    elif name == "deduplicate":
        deduplicate(store, against=options.against, embedding=options.embedding, say=shown.say)
    elif name == "classify":
        classify(store)
    elif name == "cluster":
        shown.say(f"{cluster(store, embedding=options.embedding)} clusters")
    else:
        folder = out or store.folder / "published"
        count = publish(store, folder, count=options.count, seed=options.seed,
                        synthetic=options.synthetic)  # fmt: skip
        shown.say(f"{count} tasks in {folder}")
    made = _count(store, name) - before
    _note(store, name, time.monotonic() - began, _cpu() - cpu, made)


def _count(store: Store, name: str) -> int:
    """How many came through: of extract those that stand alone, not what was only read."""
    if name not in STAGES[:-1]:
        return 0
    kept = name == "extract"
    return sum(
        not record.key.endswith("!file") and (record.kept or not kept)
        for record in store.stage(name)
    )


def _cpu() -> float:
    """Processor time of this process and of those that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _note(store: Store, name: str, seconds: float, cpu: float, made: int) -> None:
    """Note what a stage took; one that goes on where it stopped took both times."""
    path = store.folder / TIMES
    said = json.loads(path.read_text()) if path.is_file() else {}
    old = {"seconds": 0.0, "cpu_seconds": 0.0, "made": 0}
    if name in _RESUMED:
        old |= said.get(name, {})
    said[name] = {"seconds": round(old["seconds"] + seconds, 2),
                  "cpu_seconds": round(old["cpu_seconds"] + cpu, 2),
                  "made": old["made"] + made}  # fmt: skip
    path.write_text(json.dumps(said, indent=1))
