"""The second stage: every module class, made to stand alone or rejected with a reason."""

import ast
import gc
import hashlib
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from kernelsmith.corpus.extract.config import config_arguments, config_values
from kernelsmith.corpus.extract.emit import emit
from kernelsmith.corpus.extract.examples import Example, read_examples
from kernelsmith.corpus.extract.forest import Forest, Inside, Parsed, Place, read_tree
from kernelsmith.corpus.extract.lineage import is_abstract
from kernelsmith.corpus.extract.notes import Notes, examples_in, shapes_in
from kernelsmith.corpus.extract.operators import operator_record
from kernelsmith.corpus.extract.slicer import Rejected, Slicer
from kernelsmith.corpus.store import Record, Store
from kernelsmith.domain.codec import Json

MOST_LINES = 1500
_CHUNK = 24
Progress = Callable[[int, int, int, int], None]
"""Told after every file: files done, files in all, classes found, classes extracted."""


def extract(store: Store, *, processes: int, progress: Progress, operators: bool = False) -> float:
    """Extract from every harvested file that was not read yet; returns the seconds it took."""
    files = [r for r in store.need("harvest").kept() if r.text("kind") == "file"]
    stage = store.stage("extract")
    done = {key.partition("!")[0] for key in stage.done() if key.endswith("!file")}
    todo = [r for r in files if r.key not in done]
    roots = store.folder / "trees"
    places = [Place(r.text("source"), roots / r.text("source") / r.text("path"), r.text("path"))
              for r in files]  # fmt: skip
    licences = {r.key: r.text("licence") for r in files}
    began = time.monotonic()
    found = extracted = 0
    chunks = [todo[i : i + _CHUNK] for i in range(0, len(todo), _CHUNK)]
    jobs = [[(r.text("source"), r.text("path")) for r in chunk] for chunk in chunks]
    work = _work(places, jobs, processes, operators=operators)
    for read, (source, path, records) in enumerate(work, start=1):
        key = f"{source}:{path}"
        for record in records:
            stage.add(_licensed(record, licences.get(key, "")))
            if not record.key.endswith("!file"):
                found += 1
                extracted += record.kept
        progress(read, len(todo), found, extracted)
    stage.close()
    return time.monotonic() - began


def _licensed(record: Record, licence: str) -> Record:
    return Record(key=record.key, reason=record.reason, detail=record.detail,
                  data={**record.data, "licence": licence})  # fmt: skip


Answer = tuple[str, str, list[Record]]


def _work(
    places: Sequence[Place], jobs: Sequence[list[tuple[str, str]]], processes: int, *,
    operators: bool,
) -> Iterator[Answer]:  # fmt: skip
    if processes <= 1 or len(jobs) <= 1:
        worker = Worker(places, operators=operators)
        for job in jobs:
            for source, path in job:
                yield source, path, worker.file(source, path)
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, _begin, (list(places), operators)) as pool:
        for answers in pool.imap_unordered(_job, jobs):
            yield from answers


_WORKER: list["Worker"] = []


def _begin(places: list[Place], operators: bool) -> None:
    # Syntax trees are large and have no cycles: looking for cycles takes most of the time.
    gc.disable()
    _WORKER[:] = [Worker(places, operators=operators)]


def _job(job: list[tuple[str, str]]) -> list[Answer]:
    return [(source, path, _WORKER[0].file(source, path)) for source, path in job]


class Worker:
    """Reads files one after the other; what it knows of one helps with the next."""

    def __init__(self, places: Sequence[Place], *, operators: bool = False) -> None:
        self.forest = Forest(places)
        self.slicer = Slicer(self.forest)
        self.operators = operators
        self._places = {(place.source, place.relative): place for place in places}
        self._examples: dict[str, dict[str, list[Example]]] = {}

    def file(self, source: str, path: str) -> list[Record]:
        """Every module class of one file, and a last record for the file itself."""
        key = f"{source}:{path}"
        name = self.forest.by_file.get((source, path))
        if name is None:
            return [Record(key=f"{key}!file", reason="hidden behind another file of its name")]
        parsed = self.forest.parse(name)
        if parsed is None:
            why = read_tree(self._places[source, path].file)
            detail = why if isinstance(why, str) else ""
            return [Record(key=f"{key}!file", reason="is not Python", detail=detail)]
        records = []
        for node in list(parsed.tree.body):
            target = Inside(name, getattr(node, "name", ""))
            try:
                if isinstance(node, ast.ClassDef):
                    if self.slicer.lineage.is_module(target):
                        records.append(self._class(parsed, target, key))
                elif self.operators and isinstance(node, ast.FunctionDef):
                    record = operator_record(self.slicer, parsed, target, key)
                    if record is not None:
                        records.append(record)
            except RecursionError:
                records.append(Record(key=f"{key}:{target.name}", reason="refers to itself"))
        return [*records, Record(key=f"{key}!file", data={"classes": len(records)})]

    def _class(self, parsed: Parsed, target: Inside, key: str) -> Record:
        key = f"{key}:{target.name}"
        lineage = self.slicer.lineage
        method = lineage.method(target, "forward")
        if method is None:
            return Record(key=key, reason="has no forward")
        if is_abstract(method[1]):
            return Record(key=key, reason="is abstract")
        try:
            made = self.slicer.cut(target)
            text, root = emit(made)
        except Rejected as error:
            return Record(key=key, reason=error.reason, detail=error.detail[:300])
        lines = text.count("\n")
        if lines > MOST_LINES:
            return Record(key=key, reason="needs too much", detail=f"{lines} lines")
        try:
            ast.parse(text)
        except SyntaxError as error:
            return Record(key=key, reason="came out broken", detail=str(error))
        notes = self._notes(target)
        config, name, values = self._config(parsed, target, notes, made.attributes)
        dropped = sorted({d for part in made.parts.values() for d in part.definition.dropped})
        data: dict[str, Json] = {
            "code": text, "root": root, "lines": lines,
            "hash": _hash(text),
            "init": cast(Json, notes.init), "forward": cast(Json, notes.forward),
            "shapes": cast(Json, shapes_in(notes.doc)),
            "config": config, "config_class": name, "config_values": cast(Json, values),
            "examples": cast(Json, [_plain(e) for e in self._find_examples(parsed, target, notes)]),
            "files": cast(Json, sorted({t.module for t in made.parts})),
            "dropped": cast(Json, dropped),
            "refused": cast(Json, sorted(made.missing.values())[:20]),
        }  # fmt: skip
        return Record(key=key, data=data)

    def _notes(self, target: Inside) -> Notes:
        """Of the class and its ancestors, the nearest word on each method."""
        found = Notes()
        for each in self.slicer.lineage.ancestors(target):
            parsed = self.forest.parse(each.module)
            said = parsed.notes.get(each.name) if parsed is not None else None
            if said is None:
                continue
            if said.has_init and not found.has_init:
                found.init, found.has_init = said.init, True
            if said.has_forward and not found.has_forward:
                found.forward, found.has_forward = said.forward, True
            found.doc = f"{found.doc}\n{said.doc}" if found.doc else said.doc
        return found

    def _config(
        self, parsed: Parsed, target: Inside, notes: Notes, mentioned: set[str]
    ) -> tuple[str, str, dict[str, str]]:
        for argument in config_arguments(notes.init):
            name, values = config_values(
                self.forest, self.slicer.lineage, target.module, notes.init[argument], mentioned
            )
            return argument, name, values
        return "", "", {}

    def _find_examples(self, parsed: Parsed, target: Inside, notes: Notes) -> list[Example]:
        found: list[Example] = []
        for text in examples_in(notes.doc):
            found += read_examples(text, "docstring").get(target.name, [])
        found += self._of_source(parsed.source).get(target.name, [])
        return sorted(found, key=lambda example: not example.called)[:4]

    def _of_source(self, source: str) -> dict[str, list[Example]]:
        if source not in self._examples:
            table: dict[str, list[Example]] = {}
            for (owner, path), place in self._places.items():
                if owner != source:
                    continue
                content = _text_of(place.file)
                if not re.search(r"(^|/)tests?(/|_)|_test\.py$|test_", path):
                    begins = content.find("if __name__ ==")
                    content = content[begins:] if begins >= 0 else ""
                if content:
                    for name, each in read_examples(content, path).items():
                        table.setdefault(name, []).extend(each)
            self._examples[source] = table
        return self._examples[source]


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _hash(text: str) -> str:
    """The same for texts that differ only in what they call their classes and functions."""
    names = re.findall(r"^(?:class|def) (\w+)", text, re.MULTILINE)
    numbers = {name: f"D{index}" for index, name in enumerate(dict.fromkeys(names))}
    plain = re.sub(r"\b\w+\b", lambda match: numbers.get(match[0], match[0]), text)
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:24]


def _plain(example: Example) -> Json:
    said = asdict(example)
    return cast(Json, {k: _lists(v) for k, v in said.items()})


def _lists(value: object) -> object:
    return [_lists(each) for each in value] if isinstance(value, tuple) else value
