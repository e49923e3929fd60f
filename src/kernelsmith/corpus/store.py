"""What each stage has done so far: one append-only file per stage, so that any of them resumes."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kernelsmith.domain.codec import Json
from kernelsmith.errors import UsageError

STAGES = ("harvest", "extract", "run", "deduplicate", "classify", "cluster", "publish")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one stage did with one thing."""

    key: str
    reason: str = ""
    """Why it went no further, in the stage's own few words; empty: it did."""
    detail: str = ""
    data: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a record needs a key")

    @property
    def kept(self) -> bool:
        """Whether it goes on to the next stage."""
        return not self.reason

    def text(self, name: str) -> str:
        """One value that is a text; empty where it is not there."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float:
        """One value that is a number; 0 where it is not there."""
        value = self.data.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where it is not there."""
        value = self.data.get(name)
        return tuple(str(each) for each in value) if isinstance(value, list) else ()

    def line(self) -> str:
        """As one line of JSON."""
        said = {"key": self.key, "reason": self.reason, "detail": self.detail}
        return json.dumps({**said, "data": dict(self.data)}, ensure_ascii=False)


class Stage:
    """One stage's records in one file; the last record of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    def __iter__(self) -> Iterator[Record]:
        """Read all records, the last of each key; what a kill cut off in the middle is passed."""
        latest: dict[str, Record] = {}
        for record in self._lines():
            latest[record.key] = record
        yield from latest.values()

    def kept(self) -> Iterator[Record]:
        """Those that went on."""
        return (record for record in self if record.kept)

    def done(self) -> set[str]:
        """What was done already."""
        return {record.key for record in self._lines()}

    def _lines(self) -> Iterator[Record]:
        if not self.path.is_file():
            return
        with self.path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                record = _record(line)
                if record is not None:
                    yield record

    def add(self, record: Record) -> None:
        """Append one record; it is on its way to the disk when this returns."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8")
            if self._file.tell() and not _ends_well(self.path):
                self._file.write("\n")
        self._file.write(record.line().encode("utf-8", "replace").decode() + "\n")
        self._file.flush()

    def clear(self) -> None:
        """Forget all."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """One stage in numbers."""

    stage: str
    seen: int
    kept: int
    reasons: tuple[tuple[str, int], ...]


class Store:
    """A folder with one file per stage."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{str(folder)!r} is no folder")
        self.folder = folder

    def stage(self, name: str) -> Stage:
        """One stage's records."""
        assert name in STAGES, name
        return Stage(self.folder / f"{name}.jsonl")

    def need(self, name: str) -> Stage:
        """One stage's records, which must be there.

        Raises:
            UsageError: The stage has not run.
        """
        stage = self.stage(name)
        if not stage.path.is_file():
            raise UsageError(
                f"{str(self.folder)!r} has no {name} yet: run 'kernelsmith corpus {name}' first"
            )
        return stage

    def count(self, name: str) -> Count:
        """One stage in numbers, the commonest reasons first."""
        seen = kept = 0
        reasons: Counter[str] = Counter()
        for record in self.stage(name):
            seen += 1
            kept += record.kept
            if not record.kept:
                reasons[record.reason] += 1
        return Count(stage=name, seen=seen, kept=kept, reasons=tuple(reasons.most_common()))


def _record(line: str) -> Record | None:
    try:
        said = json.loads(line)
        return Record(
            key=said["key"], reason=said["reason"], detail=said["detail"], data=said["data"]
        )
    except (ValueError, KeyError, TypeError):
        return None


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
