"""The first stage: every Python file of every source, laid out in folders, with its licence."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kernelsmith.corpus.harvest import licence
from kernelsmith.corpus.harvest.quality import MOST, quality
from kernelsmith.corpus.harvest.sources import File, Source, open_source
from kernelsmith.corpus.store import Record, Stage, Store
from kernelsmith.errors import UsageError

LARGEST = 2_000_000
Say = Callable[[str], None]


def harvest(
    store: Store, specs: Sequence[str], *, licences: tuple[str, ...], say: Say,
    least_files: int = 1, least_quality: int = 0,
) -> None:  # fmt: skip
    """Take in sources that are not there yet.

    A source without a Python file that could hold a module is turned away as a whole; so is one
    below the quality asked for, and one whose licence was not asked for, unless single files say
    otherwise.

    Raises:
        UsageError: No source at all could be opened.
    """
    stage = store.stage("harvest")
    done = {record.text("origin") for record in stage if record.text("kind") == "source"}
    opened = 0
    for index, spec in enumerate(specs):
        try:
            source = open_source(spec, store.folder / "clones")
        except (UsageError, OSError) as error:
            stage.add(Record(key=f"source:{spec}", reason="cannot be opened", detail=str(error),
                             data={"kind": "source", "origin": ""}))  # fmt: skip
            say(f"{spec}: {error}")
            continue
        opened += 1
        if source.origin in done:
            continue
        say(f"[{index + 1}/{len(specs)}] {source.name} {source.version}")
        # Of archives every look is a new unpacking; without a question files are taken one by one.
        files = list(source.files()) if least_quality else source.files()
        poor = _poor(source, files, least_quality) if isinstance(files, list) else ""
        if poor:
            stage.add(_of_source(source, "below the quality asked for", poor))
            say(f"{source.name}: {poor}")
            continue
        _take_in(store, stage, source, files, licences, least_files)
    stage.close()
    if not opened:
        raise UsageError("none of the sources could be opened; see the lines above")


def _take_in(
    store: Store, stage: Stage, source: Source, files: Iterable[File],
    licences: tuple[str, ...], least_files: int,
) -> None:  # fmt: skip
    root = store.folder / "trees" / source.name
    count = modules = 0
    for file in files:
        record = _file(source, file, root, licences)
        stage.add(record)
        if record.kept:
            count += 1
            modules += b"Module" in file.content
    reason = ""
    if count < least_files:
        reason = "too few usable files"
    elif not modules:
        reason = "mentions no module"
    stage.add(_of_source(source, reason, files=count, files_with_modules=modules))


def _of_source(source: Source, reason: str, detail: str = "", **counts: int) -> Record:
    return Record(
        key=f"source:{source.name}", reason=reason, detail=detail,
        data={"kind": "source", "name": source.name, "version": source.version,
              "origin": source.origin, "licence": source.licence, **counts},
    )  # fmt: skip


def _poor(source: Source, files: Sequence[File], least: int) -> str:
    """Why a source is not good enough; empty where it is."""
    found = quality(source, files)
    if found.points >= least:
        return ""
    return f"{found.points} of {MOST} signs of quality: {', '.join(found.lacking)}"


def _file(source: Source, file: File, root: Path, licences: tuple[str, ...]) -> Record:
    head = file.content[:4000].decode(errors="replace")
    own = licence.of_file(head) or source.licence
    reason = ""
    if len(file.content) > LARGEST:
        reason = "larger than 2 MB"
    elif b"\0" in file.content:
        reason = "is not text"
    elif not licence.allowed(own, licences):
        reason = "licence not asked for"
    if not reason:
        target = root / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
    return Record(
        key=f"{source.name}:{file.path}", reason=reason, detail=own if reason else "",
        data={"kind": "file", "source": source.name, "path": file.path, "licence": own,
              "bytes": len(file.content),
              "sha": hashlib.sha256(file.content).hexdigest()[:16]},
    )  # fmt: skip
