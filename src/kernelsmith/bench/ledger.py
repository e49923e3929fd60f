"""Files of records: JSONL ``bench/1``, append-only, one writer, many readers.

A line lasts when ``append`` returns. A line that cannot be read (torn by a power loss, edited,
written by another version) is reported by its number and skipped; nothing else is lost. Files of
several machines merge: the last line for a key on one device wins, devices stay apart.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.bench.lines import Lines, body_of, lines_in, value_of
from kernelsmith.bench.record import Key, Missing, Record
from kernelsmith.domain.codec import encode
from kernelsmith.errors import UsageError

SCHEMA = "bench/1"
RECORDS = "records.jsonl"
"""Its name in a bench's folder."""
TASKS = "tasks"
"""Beside it: every task, by its hash."""
_KINDS: dict[str, type[Record] | type[Missing]] = {"record": Record, "missing": Missing}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt:
    """A line that could not be read."""

    path: Path
    line: int
    """Counted from 1."""
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}; skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A record that gave way to another file's of the same entrant, entry, seed and device."""

    key: Key
    device: str
    path: Path
    """The file that it stands in."""
    by: Path
    is_other_task: bool
    """Whether the two are about different versions of the task: neither stands for the other."""

    def __str__(self) -> str:
        what = "is about another version of the task and " if self.is_other_task else ""
        return (
            f"{self.key.entrant} on {self.key.entry} seed {self.key.seed}, {self.device}: the "
            f"record in {self.path} {what}gave way to the one in {self.by}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What files of records hold together."""

    records: tuple[Record, ...] = ()
    """In the order of the files and lines; of a key on one device only the last."""
    missing: tuple[Missing, ...] = ()
    """What has no record in any of the files."""
    corrupt: tuple[Corrupt, ...] = ()
    homes: tuple[Path, ...] = ()
    """For each record the folder that its paths start from."""
    replaced: tuple[Replaced, ...] = ()
    """What one file says and a later one says otherwise."""

    @property
    def done(self) -> frozenset[Key]:
        """What need not be done again."""
        return frozenset(record.key for record in self.records)

    def source_of(self, record: Record) -> str:
        """Read a winner's source.

        Raises:
            UsageError: There is none, or it is not the one that was judged.
        """
        if record.winner is None:
            raise UsageError(f"{record.entrant} on {record.entry} has no winner")
        home = self.homes[self.records.index(record)]
        path = home / record.winner.path
        try:
            text = path.read_text(encoding="utf-8", errors="surrogatepass")
        except OSError as error:
            raise UsageError(f"cannot read the winner {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} was changed after it was judged: it is no text") from error
        if sha256(text) != record.winner.sha256:
            raise UsageError(f"{path} was changed after it was judged")
        return text


def read(*paths: Path) -> Results:
    """Read files of records, or folders that hold one, and put them together.

    Raises:
        UsageError: One of them is not there, or is another file than one of records.
    """
    found: dict[tuple[Key, str], tuple[Record, Path]] = {}
    missing: dict[Key, Missing] = {}
    corrupt: list[Corrupt] = []
    replaced: list[Replaced] = []
    for path in map(located, paths):
        for value in _values(path, corrupt):
            if isinstance(value, Missing):
                missing[value.key] = value
                continue
            identity = (value.key, str(value.device))
            before = found.pop(identity, None)  # the last one also takes its place in the order
            found[identity] = (value, path)
            if before is not None and before[1] != path and before[0] != value:
                replaced.append(
                    Replaced(
                        key=value.key, device=str(value.device), path=before[1], by=path,
                        is_other_task=before[0].task != value.task,
                    )
                )  # fmt: skip
    answers = [record for record, _ in found.values()]
    return Results(
        records=tuple(answers),
        missing=tuple(
            each for each in missing.values() if not any(map(each.is_answered_by, answers))
        ),
        corrupt=tuple(corrupt),
        homes=tuple(file.parent for _, file in found.values()),
        replaced=tuple(replaced),
    )  # fmt: skip


def _values(path: Path, corrupt: list[Corrupt]) -> Iterator[Record | Missing]:
    """What a file holds; lines that cannot be read are added to those that are corrupt.

    Raises:
        UsageError: It is another file than one of records: not a line of it can be read.
    """
    before, count = len(corrupt), 0
    for number, line in enumerate(lines_in(path), start=1):
        if not line.strip():
            continue
        try:
            value = parsed(line)
        except ValueError as error:
            corrupt.append(Corrupt(path=path, line=number, reason=str(error)))
            continue
        count += 1
        yield value
    if not count and corrupt[before:] and path.name != RECORDS:
        first, beside = corrupt[before], path.parent / RECORDS
        meant = repr(str(beside)) if beside.is_file() else f"a bench's folder, or its {RECORDS}"
        raise UsageError(
            f"no line of {str(path)!r} is a record (line {first.line}: {first.reason}); "
            f"hand in {meant}"
        )


def located(path: Path) -> Path:
    """The file of records that a path means: itself, or the one in a bench's folder.

    Raises:
        UsageError: There is none.
    """
    file = path / RECORDS if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"no results at {str(file)!r}; a bench writes them: kernelsmith bench")
    return file


def parsed(line: str) -> Record | Missing:
    """Read one line.

    Raises:
        ValueError: It is not one of ours, or describes an impossible value.
    """
    body = body_of(line, SCHEMA)
    kind = str(body.pop("kind", None))
    if kind not in _KINDS:
        raise ValueError(f"no kind {kind!r}; known are {', '.join(_KINDS)}")
    return value_of(body, _KINDS[kind])


def written(value: Record | Missing) -> str:
    """One line, without its end."""
    kind = "record" if isinstance(value, Record) else "missing"
    body = encode(value)
    assert isinstance(body, dict)
    return json.dumps({"schema": SCHEMA, "kind": kind} | body, ensure_ascii=True, allow_nan=False)


def sha256(text: str) -> str:
    """What a record knows a source by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Ledger(Lines):
    """The one writer of a file of records."""

    def append(self, *values: Record | Missing) -> None:
        """Write lines; they last when this returns."""
        self.append_lines(*map(written, values))


def merge(paths: Sequence[Path], into: Path) -> Results:
    """Write what several files hold into one, with tasks and winners' sources beside it.

    Raises:
        UsageError: One is not there, none holds a record, or ``into`` exists already.
    """
    target = into / RECORDS
    if target.exists():
        raise UsageError(f"{target} exists already; merge into a new folder")
    results = read(*paths)
    if not results.records and not results.missing:
        why = f"; {results.corrupt[0]}" if results.corrupt else ""
        raise UsageError(f"nothing to merge: no record in {', '.join(map(str, paths))}{why}")
    with Ledger(target) as ledger:
        ledger.append(*results.missing, *results.records)
    for record, home in zip(results.records, results.homes, strict=True):
        kept = [Path(TASKS, f"{record.task}.json")] if record.task else []
        kept += [Path(record.winner.path)] if record.winner is not None else []
        for path in kept:
            if (home / path).is_file() and not (into / path).exists():
                (into / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(home / path, into / path)
    return results
