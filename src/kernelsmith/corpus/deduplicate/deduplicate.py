"""The fifth stage: one of each, and nothing that is in a benchmark."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from kernelsmith.bench.suite import Absent, open_suite
from kernelsmith.corpus.deduplicate import forms
from kernelsmith.corpus.deduplicate.embed import vectors
from kernelsmith.corpus.run.runner import Runner, lent
from kernelsmith.corpus.store import Record, Store
from kernelsmith.domain.codec import Json
from kernelsmith.errors import UsageError

NEAR, CLOSE, CONTAMINATED = 0.8, 0.985, 0.7
"""Shares of equal shingles that make a copy; of equal direction; of a benchmark's task."""
_LEAST_OPS = 3
"""A graph of fewer operators than this says too little to tell two modules apart."""
_GRAPHS = "benchmark_graphs.tsv"
Say = Callable[[str], None]


@dataclass(slots=True)
class Shape:
    """One task in the forms that copies are found by."""

    key: str
    text: str
    words: list[str]
    normal: str
    signature: forms.Signature
    graph: str
    ops: int
    rank: tuple[float, ...]


@dataclass(slots=True)
class _Groups:
    """Who is a copy of whom, and by which rule that came out first."""

    parents: list[int]
    why: dict[int, str] = field(default_factory=dict)

    def find(self, index: int) -> int:
        while self.parents[index] != index:
            self.parents[index] = self.parents[self.parents[index]]
            index = self.parents[index]
        return index

    def join(self, one: int, other: int, why: str) -> None:
        a, b = self.find(one), self.find(other)
        if a != b:
            self.parents[b] = a
            self.why.setdefault(one, why)
            self.why.setdefault(other, why)


def shape_of(key: str, text: str, record: Record | None = None) -> Shape | None:
    """Bring one task file into its forms; none where it is not Python."""
    try:
        tree = forms.body_of(text)
    except SyntaxError:
        return None
    words = forms.tokens(tree)
    rank: tuple[float, ...] = (0.0,)
    ops = 0
    if record is not None:
        counted = record.data.get("ops")
        ops = sum(int(str(n)) for n in counted.values()) if isinstance(counted, dict) else 0
        rank = (
            -float(bool(record.data.get("random"))), record.number("workloads"),
            float(bool(record.data.get("exact"))), -float(len(text)),
        )  # fmt: skip
    return Shape(
        key=key, text=text, words=words, normal=forms.normal(tree),
        signature=forms.signature(forms.shingles(words)),
        graph=record.text("graph") if record else "", ops=ops, rank=rank,
    )  # fmt: skip


def deduplicate(
    store: Store, *, against: Sequence[str], embedding: str = "tfidf", say: Say,
    near: float = NEAR, graphs: bool = True,
    runner: Runner | None = None,
) -> None:  # fmt: skip
    """Keep one of each group of copies, the most complete; drop what benchmarks hold.

    Raises:
        UsageError: A suite to be kept clear of is not there.
    """
    records = list(store.need("run").kept())
    shapes = [s for r in records if (s := shape_of(r.key, r.text("code"), r)) is not None]
    shapes.sort(key=lambda each: (tuple(-n for n in each.rank), each.key))
    say(f"{len(shapes)} modules to compare")
    groups = group(shapes, embedding=embedding, near=near, graphs=graphs)
    known = list(benchmark_shapes(against, say, store.folder / _GRAPHS, runner))
    stage = store.stage("deduplicate")
    stage.clear()
    members: dict[int, list[int]] = defaultdict(list)
    for index in range(len(shapes)):
        members[groups.find(index)].append(index)
    guilty = contaminated([shapes[min(each)] for each in members.values()], known)
    for each in members.values():
        best = min(each)
        shape = shapes[best]
        copies = [shapes[i].key for i in each if i != best]
        found = guilty.get(shape.key, "")
        stage.add(
            Record(key=shape.key, reason="in a benchmark" if found else "", detail=found,
                   data={"copies": cast(Json, copies[:50]), "copy_count": len(copies)})
        )  # fmt: skip
        for i in each:
            if i != best:
                why = groups.why.get(i, "copy")
                stage.add(Record(key=shapes[i].key, reason=why, detail=shape.key))
    stage.close()


def group(shapes: Sequence[Shape], *, embedding: str, near: float, graphs: bool) -> _Groups:
    """Join copies: by text, nameless text, shingles, embedding, graph, in this order."""
    groups = _Groups(list(range(len(shapes))))
    _by_key(groups, shapes, lambda shape: " ".join(shape.words), "same text")
    _by_key(groups, shapes, lambda shape: shape.normal, "same but for names")
    _near(groups, shapes, near)
    _embedded(groups, shapes, embedding, near)
    if graphs:
        _by_key(groups, shapes, lambda shape: shape.graph if shape.ops >= _LEAST_OPS else "",
                "same graph")  # fmt: skip
    return groups


def _by_key(
    groups: _Groups, shapes: Sequence[Shape], key: Callable[[Shape], str], why: str
) -> None:
    first: dict[str, int] = {}
    for index, shape in enumerate(shapes):
        name = key(shape)
        if name:
            groups.join(first.setdefault(name, index), index, why)


def _near(groups: _Groups, shapes: Sequence[Shape], near: float) -> None:
    buckets: dict[bytes, list[int]] = defaultdict(list)
    for index, shape in enumerate(shapes):
        compared: set[int] = set()
        for band in forms.bands(shape.signature, 16):
            for other in buckets[band][:40]:
                if other not in compared:
                    compared.add(other)
                    if forms.likeness(shape.signature, shapes[other].signature) >= near:
                        groups.join(other, index, "near copy")
            buckets[band].append(index)


def _embedded(groups: _Groups, shapes: Sequence[Shape], embedding: str, near: float) -> None:
    """Those that point the same way, where the shingles agree at least half-way, too."""
    if len(shapes) < 3:
        return
    found = vectors([" ".join(shape.words) for shape in shapes], embedding)
    for start in range(0, len(shapes), 512):
        likes = found[start : start + 512] @ found.T
        for row, column in zip(*np.nonzero(likes > CLOSE), strict=True):
            one, other = int(row) + start, int(column)
            if (
                one < other
                and forms.likeness(shapes[one].signature, shapes[other].signature) >= near * 0.75
            ):
                groups.join(one, other, "same embedding")


def benchmark_shapes(
    against: Sequence[str], say: Say, kept: Path, runner: Runner | None = None
) -> Iterator[Shape]:
    """The tasks of suites (``kernelbench:PATH``, ``builtin``, ...), with their graphs.

    A task is traced in the sandbox once; ``kept`` is where its graph's hash is looked up after.
    """
    known = dict(line.split("\t") for line in _lines(kept))
    with lent(runner) as sandbox, ThreadPoolExecutor(2) as pool:
        for spec in against:
            tasks = [(key, text, _sha(text)) for key, text in _suite(spec)]
            new = [task for task in tasks if task[2] not in known]
            for (_, _, sha), graph in zip(
                new, pool.map(lambda task: sandbox.graph(task[0], task[1]), new), strict=True
            ):
                known[sha] = graph
                kept.parent.mkdir(parents=True, exist_ok=True)
                with kept.open("a") as file:
                    file.write(f"{sha}\t{graph}\n")
            for key, text, sha in tasks:
                shape = shape_of(key, text)
                if shape is not None:
                    shape.graph = known[sha]
                    yield shape
            say(f"{spec}: {len(tasks)} tasks to be kept clear of")


def _lines(path: Path) -> list[str]:
    found = path.read_text().splitlines() if path.is_file() else []
    return [line for line in found if line.count("\t") == 1]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _suite(spec: str) -> Iterator[tuple[str, str]]:
    kind, _, where = spec.partition(":")
    if kind in ("kernelbench", "folder"):
        path = Path(where).expanduser()
        if not path.is_dir():
            raise UsageError(f"no folder {where!r} to keep clear of")
        for file in sorted(path.rglob("*.py")):
            text = file.read_text(errors="replace")
            if "class Model" in text and "get_inputs" in text:
                yield f"{kind}/{file.relative_to(path).with_suffix('').as_posix()}", text
        return
    for entry in open_suite(spec).entries():
        if not isinstance(entry, Absent):
            yield entry.id, entry.task.source


def contaminated(shapes: Iterable[Shape], known: Sequence[Shape]) -> dict[str, str]:
    """Which tasks are a benchmark's, and whose: by nameless text, by shingles, by graph."""
    normals = {each.normal: each.key for each in known}
    graphs = {each.graph: each.key for each in known if each.graph}
    buckets: dict[bytes, list[int]] = defaultdict(list)
    for index, each in enumerate(known):
        for band in forms.bands(each.signature):
            buckets[band].append(index)
    found: dict[str, str] = {}
    for shape in shapes:
        if shape.normal in normals:
            found[shape.key] = f"same but for names: {normals[shape.normal]}"
        elif shape.graph in graphs:
            found[shape.key] = f"same graph: {graphs[shape.graph]}"
        else:
            met = {i for band in forms.bands(shape.signature) for i in buckets.get(band, ())}
            for i in sorted(met):
                if forms.likeness(shape.signature, known[i].signature) >= CONTAMINATED:
                    found[shape.key] = f"near copy: {known[i].key}"
                    break
    return found
