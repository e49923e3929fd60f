"""Files of records: JSONL ``bench/1``, append-only, one writer, many readers.

A line lasts when ``append`` returns. A line that cannot be read (torn by a power loss, edited,
written by another version) is reported by its number and skipped; nothing else is lost. Files of
several machines merge: the last line for a key on one device wins, devices stay apart.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelsmith.bench.record import Key, Missing, Record
from kernelsmith.domain.codec import decode, encode
from kernelsmith.errors import UsageError

SCHEMA = "bench/1"
RECORDS = "records.jsonl"
"""Its name in a bench's folder."""
TASKS = "tasks"
"""Beside it: every task, by its hash."""
_KINDS: dict[str, type] = {"record": Record, "missing": Missing}


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
class Results:
    """What files of records hold together."""

    records: tuple[Record, ...] = ()
    """In the order of the files and lines; of a key on one device only the last."""
    missing: tuple[Missing, ...] = ()
    """What has no record in any of the files."""
    corrupt: tuple[Corrupt, ...] = ()
    homes: tuple[Path, ...] = ()
    """For each record the folder that its paths start from."""

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
        if sha256(text) != record.winner.sha256:
            raise UsageError(f"{path} was changed after it was judged")
        return text


def read(*paths: Path) -> Results:
    """Read files of records, or folders that hold one, and put them together.

    Raises:
        UsageError: One of them is not there.
    """
    found: dict[tuple[Key, str], tuple[Record, Path]] = {}
    missing: dict[Key, Missing] = {}
    corrupt: list[Corrupt] = []
    for path in map(located, paths):
        for number, line in enumerate(_lines(path), start=1):
            if not line.strip():
                continue
            try:
                value = parsed(line)
            except ValueError as error:
                corrupt.append(Corrupt(path=path, line=number, reason=str(error)))
                continue
            if isinstance(value, Missing):
                missing[value.key] = value
                continue
            identity = (value.key, str(value.device))
            found.pop(identity, None)  # the last one also takes its place in the order
            found[identity] = (value, path.parent)
    done = {key for key, _ in found}
    return Results(
        records=tuple(record for record, _ in found.values()),
        missing=tuple(each for key, each in missing.items() if key not in done),
        corrupt=tuple(corrupt),
        homes=tuple(home for _, home in found.values()),
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
    try:
        body = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from error
    schema = body.pop("schema", None) if isinstance(body, dict) else None
    if schema != SCHEMA:
        raise ValueError(f"its schema is {schema!r}, not {SCHEMA!r}")
    kind = str(body.pop("kind", None))
    if kind not in _KINDS:
        raise ValueError(f"no kind {kind!r}; known are {', '.join(_KINDS)}")
    try:
        value = decode(body, _KINDS[kind])
    except TypeError as error:
        raise ValueError(str(error)) from error
    assert isinstance(value, Record | Missing)
    return value


def written(value: Record | Missing) -> str:
    """One line, without its end."""
    kind = "record" if isinstance(value, Record) else "missing"
    body = encode(value)
    assert isinstance(body, dict)
    return json.dumps({"schema": SCHEMA, "kind": kind} | body, ensure_ascii=True, allow_nan=False)


def sha256(text: str) -> str:
    """What a record knows a source by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Ledger:
    """The one writer of a file of records; the file is locked until it is closed."""

    def __init__(self, path: Path) -> None:
        """Open or begin a file.

        Raises:
            UsageError: It cannot be written, or another process writes it.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise UsageError(f"another bench writes {path}; wait for it, or end it") from error
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            self._write(b"\n")  # a torn line stays, is reported, and spoils nothing after it

    def append(self, *values: Record | Missing) -> None:
        """Write lines; they last when this returns."""
        text = "".join(f"{written(value)}\n" for value in values)
        self._write(text.encode())

    def close(self) -> None:
        """Let others write."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, content: bytes) -> None:
        try:
            while content:
                content = content[os.write(self._fd, content) :]
            os.fsync(self._fd)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from error


def merge(paths: Sequence[Path], into: Path) -> Results:
    """Write what several files hold into one, with tasks and winners' sources beside it.

    Raises:
        UsageError: One is not there, or ``into`` exists already.
    """
    target = into / RECORDS
    if target.exists():
        raise UsageError(f"{target} exists already; merge into a new folder")
    results = read(*paths)
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


def _lines(path: Path) -> Iterable[str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return content.decode("utf-8", "replace").split("\n")
