"""A parquet or jsonl file with a column ``code``: KernelBench's own data set is one."""

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.families import family_of
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
        self._path = path
        self.name = path.stem.replace(" ", "_")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield row by row."""
        with Surveyor() as surveyor:
            seen: set[str] = set()
            for number, row in self._rows():
                name = _unique(f"{self.name}/{_id_of(row, number)}", seen)
                if isinstance(row, str):
                    yield Absent(id=name, reason=row)
                    continue
                yield self._entry(name, row, surveyor)

    def _rows(self) -> Iterator[tuple[int, Row | str]]:
        if self._path.suffix == ".parquet":
            yield from enumerate(parquet_rows(self._path), start=1)
            return
        for number, line in enumerate(read_source(self._path, "table").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, f"line {number} is not JSON: {error}"
                continue
            yield number, row if isinstance(row, dict) else f"line {number} is no JSON object"

    def _entry(self, name: str, row: Row, surveyor: Surveyor) -> Entry | Absent:
        code, absent = row.get("code"), partial(Absent, id=name, level=_first(row, _LEVELS))
        if not isinstance(code, str):
            return absent(reason="the row has no column 'code'")
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


def _id_of(row: Row | str, number: int) -> str:
    if isinstance(row, str):
        return f"row{number}"
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
