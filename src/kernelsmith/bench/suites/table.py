"""A parquet or jsonl file with a column ``code``.

Rows of KernelBench's own data set are known by level, number and name, and are the same entries as
those of a checkout.
"""

import importlib.util
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites import kernelbench
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.kernelbench_names import number_of
from kernelsmith.bench.suites.reading import (
    dtype_of,
    missing_package,
    parquet_rows,
    promised,
    task_from_text,
)
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import read_source

_NAMES = ("name", "task_name", "task", "title")
_NUMBERS = ("problem_id", "id", "uuid")
_LEVELS = ("level", "level_id", "difficulty")
_CATEGORIES = ("category", "op_type", "group")

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One row as it was found."""

    number: int
    """Counted from 1."""
    row: Row | str
    """A text says why it cannot be read."""

    @property
    def place(self) -> tuple[int, int] | None:
        """KernelBench's level and number, where it is one of its problems."""
        if isinstance(self.row, str):
            return None
        said = (_first(self.row, names) for names in (_LEVELS, _NUMBERS[:1], _NAMES))
        return number_of(*said)


class Table:
    """One task a row; columns besides ``code`` are taken where they are known."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in (".parquet", ".jsonl"):
            raise UsageError(f"{str(path)!r} is neither .parquet nor .jsonl")
        if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
            raise UsageError(
                "reading parquet needs pyarrow, which is not installed: pip install pyarrow, "
                "or save the table as jsonl"
            )
        self._path, self._stem = path, path.stem.replace(" ", "_")

    @property
    def name(self) -> str:
        """The file's, or KernelBench's where every row that can be read is one of its problems."""
        return kernelbench.NAME if self._is_kernelbench else self._stem

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield row by row; KernelBench as a checkout does, level by level and by number."""
        seen: set[str] = set()
        with Surveyor() as surveyor:
            for each in self._ordered() if self._is_kernelbench else self._lines:
                if isinstance(each, Absent):
                    yield each
                elif isinstance(each.row, str):
                    name = _unique(f"{self.name}/row{each.number}", seen)
                    yield Absent(id=name, reason=each.row)
                elif each.place is not None:
                    name = _unique(kernelbench.id_of(*each.place), seen)
                    yield self._problem(*each.place, name, each.row)
                else:
                    name = _unique(f"{self.name}/{_id_of(each.row, each.number)}", seen)
                    yield self._entry(name, each.row, surveyor)

    @cached_property
    def _lines(self) -> list[_Line]:
        rows: Iterable[tuple[int, Row | str]]
        if self._path.suffix == ".parquet":
            rows = enumerate(parquet_rows(self._path), start=1)
        else:
            text = read_source(self._path, "table")
            lines = enumerate(text.split("\n"), start=1)
            rows = ((number, _read(line, number)) for number, line in lines if line.strip())
        return [_Line(number=number, row=row) for number, row in rows]

    @cached_property
    def _is_kernelbench(self) -> bool:
        rows = [each for each in self._lines if not isinstance(each.row, str)]
        return bool(rows) and all(each.place is not None for each in rows)

    def _ordered(self) -> Iterator[_Line | Absent]:
        known = [(each.place, each.number, each) for each in self._lines if each.place is not None]
        known.sort(key=lambda each: each[:2])
        for level in kernelbench.LEVELS:
            own = [line for place, _, line in known if place[0] == level]
            if not own:
                yield kernelbench.absent_level(level, "table")
            yield from own
        yield from (each for each in self._lines if each.place is None)

    def _problem(self, level: int, number: int, name: str, row: Row) -> Entry | Absent:
        code, absent = row.get("code"), partial(Absent, id=name, level=f"level {level}")
        if why := _no_code(code):
            return absent(reason=why)
        assert isinstance(code, str)
        stem = _first(row, _NAMES).removesuffix(".py")
        load = partial(task_from_text, stem, code)
        return kernelbench.problem(level, number, stem, code, load, id=name)

    def _entry(self, name: str, row: Row, surveyor: Surveyor) -> Entry | Absent:
        code, absent = row.get("code"), partial(Absent, id=name, level=_first(row, _LEVELS))
        if why := _no_code(code):
            return absent(reason=why)
        assert isinstance(code, str)
        stem = _first(row, _NAMES) or name.rpartition("/")[2]
        try:
            if package := missing_package(code):
                return absent(reason=f"needs {package}: pip install {package}")
            task = promised(task_from_text(stem, code, surveyor.ask), stem)
        except UsageError as error:
            return absent(reason=str(error))
        except SyntaxError as error:
            return absent(reason=f"is not Python: line {error.lineno}: {error.msg}")
        category = _first(row, _CATEGORIES)
        return Entry(
            id=name, task=task, level=_first(row, _LEVELS), category=category,
            family=family_of(re.sub(r"^\d+_", "", stem), category), dtype=dtype_of(code),
        )  # fmt: skip


def _first(row: Row, columns: tuple[str, ...]) -> str:
    return next((str(row[each]) for each in columns if row.get(each) not in (None, "")), "")


def _read(line: str, number: int) -> Row | str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"line {number} is not JSON: {error}"
    return row if isinstance(row, dict) else f"line {number} is no JSON object"


def _no_code(code: object) -> str:
    """Why a row is no task, as far as its column says."""
    if not isinstance(code, str):
        return "the row has no column 'code'"
    try:
        code.encode()
    except UnicodeEncodeError as error:
        return f"its code is not text: {error.reason}"
    return ""


def _id_of(row: Row, number: int) -> str:
    parts = [_first(row, _LEVELS), _first(row, _NUMBERS) or _first(row, _NAMES) or f"row{number}"]
    return re.sub(r"\s+", "_", "/".join(part for part in parts if part))


def _unique(name: str, seen: set[str]) -> str:
    """The name, with a number where another row has it already."""
    found, count = name, 1
    while found in seen:
        count += 1
        found = f"{name}.{count}"
    seen.add(found)
    return found
