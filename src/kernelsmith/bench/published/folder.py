"""Reading a folder of published kernels: files of sources, and tables with sources in them.

Known are KernelBench's own layout of generations (``level_1_problem_23_sample_0_kernel.py``), any
file that defines ``ModelNew``, alone or with its reference, CUDA files, and tables (.json, .jsonl,
.csv, .parquet) with a column of code, among them CUDA-L1's and robust-kbench's.
"""

import ast
import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kernelsmith.bench.published.kernel import Published, Unread, language_of
from kernelsmith.bench.suites.reading import parquet_rows
from kernelsmith.errors import UsageError

_NUMBERED = (
    re.compile(r"level_?(?P<level>\d)_problem_?(?P<number>\d+)"),
    re.compile(r"\bl(?P<level>\d)_p(?P<number>\d+)"),
    re.compile(r"level_?(?P<level>\d)[/_](?P<number>\d+)_"),
    re.compile(r"level_?(?P<level>\d)/(?:[^/]*/)*(?P<number>\d+)_"),
)
_CODE = ("custom_code", "kernel_code", "kernel", "code", "solution", "Code", "CUDA_Code")
_REFERENCE = ("ref_code", "reference_code", "reference", "pytorch_code", "PyTorch_Code_Module")
_LEVEL = ("level_id", "level", "Level_ID")
_NUMBER = ("task_id", "problem_id", "problem", "Task_ID")
_NAME = ("problem_name", "task_name", "name", "Op_Name")
_CLAIM = (
    "score_default", "speedup", "torch_speedup", "Speedup", "CUDA_Speedup_Native", "fast_speedup",
)  # fmt: skip
_NOTHING = ("", "None", "null", "nan")
"""How tables say that there is no kernel."""
_SIZE = 64 << 20


def published_in(path: Path) -> Iterator[Published | Unread]:
    """Every kernel in a folder, or in one file, and whatever there cannot be read.

    Raises:
        UsageError: There is no such folder, or no kernel in it.
    """
    if not path.exists():
        raise UsageError(f"no folder {str(path)!r} to audit")
    root = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found, unread = False, ""
    for file in files:
        relative = file.relative_to(root)
        if any(part.startswith((".", "_")) for part in relative.parts) or not file.is_file():
            continue
        for each in _kernels(file, str(relative)):
            if isinstance(each, Unread):
                unread = unread or f"; {each}"
            else:
                found = True
            yield each
    if not found:
        raise UsageError(
            f"{str(path)!r} holds no kernel: no .py that defines ModelNew, no .cu, and no table "
            f"with a column of {', '.join(_CODE[:4])}{unread}"
        )


def _kernels(file: Path, name: str) -> Iterator[Published | Unread]:
    suffix = file.suffix.lower()
    if suffix not in (".py", ".cu", ".json", ".jsonl", ".csv", ".parquet"):
        return
    try:
        size = file.stat().st_size
        if size > _SIZE:
            most = f"more than {_SIZE >> 20} MB are not read: split it"
            yield Unread(where=name, reason=f"has {size >> 20} MB, and {most}")
            return
        if suffix == ".parquet":
            yield from _rows(parquet_rows(file), name)
            return
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        yield Unread(where=name, reason=f"cannot be read: {error.strerror}")
        return
    except UsageError as error:
        yield Unread(where=name, reason=str(error))
        return
    if suffix == ".cu":
        yield Published(id=name, source=text, language="cuda", **_numbers(name))  # type: ignore[arg-type]
    elif suffix == ".py":
        yield from _file(text, name)
    elif suffix == ".csv":
        csv.field_size_limit(_SIZE)
        try:
            rows = list(csv.DictReader(text.splitlines(keepends=True)))
        except csv.Error as error:
            yield Unread(where=name, reason=f"cannot be read as csv: {error}")
            return
        yield from _rows(rows, name)
    else:
        objects, unread = _objects(text, name)
        yield from _rows(objects, name)
        yield from unread


def _file(text: str, name: str) -> Iterator[Published]:
    defined = _defined(text)
    if defined is None or "ModelNew" not in defined:
        return
    own = text if {"Model", "get_inputs"} <= defined else ""
    yield Published(
        id=name,
        source=text,
        language=language_of(text),
        reference=own,
        name=Path(name).stem,
        **_numbers(name),  # type: ignore[arg-type]
    )


def _defined(text: str) -> set[str] | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {"ModelNew"} if "class ModelNew" in text else None  # it does not build: say so later
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _rows(rows: Iterable[Mapping[str, object]], name: str) -> Iterator[Published]:
    seen: set[str] = set()
    for index, row in enumerate(rows):
        source = _text(row, _CODE)
        if not source:
            continue
        level, number = _integer(row, _LEVEL), _integer(row, _NUMBER)
        where = f"{name}#{index}" if level is None else f"{name}#level{level}/{number}"
        if where in seen:  # several kernels for one problem
            where = f"{where}-{index}"
        seen.add(where)
        device = _text(row, ("hardware", "gpu", "device"))
        yield Published(
            id=where, source=source, language=language_of(source), level=level, number=number,
            name=_text(row, _NAME), reference=_text(row, _REFERENCE), claim=_claim(row),
            claimed_on=device or Path(name).stem,
        )  # fmt: skip


def _objects(text: str, name: str) -> tuple[list[Mapping[str, object]], list[Unread]]:
    """Objects of a JSON file: its lines, its list, or the lists inside of an object."""
    try:
        return list(_nested(json.loads(text), None)), []
    except (ValueError, RecursionError) as error:
        whole = Unread(where=name, reason=f"is not JSON: {error}")
    found: list[Mapping[str, object]] = []
    unread = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("no object")
            found.append(row)
        except (ValueError, RecursionError) as error:
            unread.append(Unread(where=f"{name}:{number}", reason=f"is not JSON: {error}"))
    return (found, unread) if found else ([], [whole])  # of a broken whole no line says more


def _nested(body: object, level: str | None) -> Iterator[Mapping[str, object]]:
    if isinstance(body, list):
        for each in body:
            if isinstance(each, dict):
                yield each if level is None or "level_id" in each else {**each, "level_id": level}
    elif isinstance(body, dict):
        if any(isinstance(body.get(key), str) for key in _CODE):
            yield body
            return
        for key, inner in body.items():
            yield from _nested(inner, key if key.isdigit() else None)


def _text(row: Mapping[str, object], names: tuple[str, ...]) -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip() not in _NOTHING:
            return value
    return ""


def _integer(row: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        found = re.fullmatch(r"\D*(\d+)", str(row.get(name, "")))
        if found:
            return int(found[1])
    return None


def _claim(row: Mapping[str, object]) -> float | None:
    for name in _CLAIM:
        try:
            value = float(str(row.get(name, "")))
        except ValueError:
            continue
        if 0 < value < math.inf:
            return value
    return None


def _numbers(name: str) -> dict[str, int]:
    for pattern in _NUMBERED:
        if found := pattern.search(name.lower()):
            return {key: int(value) for key, value in found.groupdict().items()}
    return {}
