"""FlashInfer-Bench: definitions with a reference, and workloads taken from real serving traces.

Handled: its tolerance passes where either the absolute or the relative error is small, its
reference outputs are lent to the candidate's process, and that process decides; here our judge
does. Index tensors of a trace become part of the task's text; floating ones are drawn, as there.
"""

import base64
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.families import family_of
from kernelsmith.domain.task import DTYPES, Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import read_source

_EMBED_BYTES = 1 << 20
_LARGE_BYTES = 1 << 30
_SMALL_BYTES = 8 << 20
_NAMED = 5
"""Broken lines of a file that are named."""
_HELD_OUT = 4
_WIDTHS = {
    "float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
_STORED = {"I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
           "BOOL": "bool", "F64": "float64", "F32": "float32", "F16": "float16",
           "BF16": "bfloat16"}  # fmt: skip
_DRAWING = '''

import base64 as _base64
import zlib as _zlib

import torch


def _stored(text, dtype, shape):
    """A tensor of the trace."""
    raw = bytearray(_zlib.decompress(_base64.b64decode(text)))
    return torch.frombuffer(raw, dtype=dtype).reshape(shape).to(torch.get_default_device())


def _drawn(dtype, *shape):
    """Normal numbers, as the suite draws them."""
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, dtype=torch.bool)
    return torch.randn(shape, dtype=dtype)


def get_inputs(case=0):
    """Draw the arguments of one workload of the suite."""
    return _CASES[case]()


_CASES = [
'''


class _Unusable(ValueError):
    """A workload or definition that no task can be made of."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One workload as text and in numbers."""

    said: str
    bytes: int
    code: str


class FlashInfer:
    """A checkout of the flashinfer-trace data set, or any folder of the same form."""

    name = "flashinfer"

    def __init__(self, path: Path) -> None:
        self._root = path
        if not any((path / "definitions").rglob("*.json")):
            raise UsageError(f"{str(path)!r} holds no definitions/*.json")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield definitions in the order of names."""
        workloads, unread = self._workloads()
        yield from unread
        seen: set[str] = set()
        for path in sorted((self._root / "definitions").rglob("*.json")):
            try:
                definition = json.loads(read_source(path, "definition"))
                name = str(definition["name"])
            except UsageError as error:
                yield Absent(id=f"{self.name}/{path.stem}", reason=str(error))
                continue
            except (ValueError, RecursionError, KeyError, TypeError) as error:
                yield Absent(id=f"{self.name}/{path.stem}", reason=f"{path.name}: {error!r}")
                continue
            if name in seen:
                continue
            seen.add(name)
            yield self._entry(name, definition, workloads.get(name, []))
        for name in sorted(workloads.keys() - seen):
            yield Absent(
                id=f"{self.name}/{name}", reason="has workloads and no definition in this checkout"
            )

    def _workloads(self) -> tuple[dict[str, list[dict[str, Any]]], list[Absent]]:
        """Every workload by definition, each once, and the files and lines that cannot be read.

        Results of solutions are not read.
        """
        found: dict[str, dict[str, dict[str, Any]]] = {}
        unread = []
        for folder in ("workloads", "traces"):
            for path in sorted((self._root / folder).rglob("*.jsonl")):
                inside = path.relative_to(self._root).as_posix().replace(" ", "_")
                broken = []
                try:
                    lines = read_source(path, "workload").splitlines()
                except UsageError as error:
                    unread.append(Absent(id=f"{self.name}/{inside}", reason=str(error)))
                    continue
                for number, line in enumerate(lines, start=1):
                    try:
                        said = json.loads(line)
                        workload, name = said["workload"], str(said["definition"])
                        key = json.dumps([workload.get("axes"), workload.get("inputs")])
                    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
                        broken += [number] if line.strip() else []
                        continue
                    found.setdefault(name, {})[key] = workload
                if broken:
                    reason = _broken(lines, broken)
                    unread.append(Absent(id=f"{self.name}/{inside}", reason=reason))
        return {name: list(each.values()) for name, each in found.items()}, unread

    def _entry(
        self, name: str, definition: dict[str, Any], workloads: list[dict[str, Any]]
    ) -> Entry | Absent:
        ident = f"{self.name}/{name}"
        try:
            task, left_out = self._task(name, definition, workloads)
            dtypes = [str(each["dtype"]) for each in definition["inputs"].values()]
        except _Unusable as error:
            return Absent(id=ident, reason=str(error))
        except (LookupError, TypeError, AttributeError) as error:
            return Absent(id=ident, reason=f"its definition or a workload is broken: {error!r}")
        kind = str(definition.get("op_type") or definition.get("type") or "")
        tags = [str(tag) for tag in definition.get("tags") or ()]
        models = [tag.removeprefix("model:") for tag in tags if tag.startswith("model:")]
        notes = [f"as {', '.join(models)} calls it"] if models else []
        notes += [f"{left_out} workloads left out"] if left_out else []
        return Entry(
            id=ident, task=task, level="", category=kind, family=family_of(name, kind),
            dtype=next((each for each in dtypes if "float" in each), dtypes[0]),
            note="; ".join(notes),
        )  # fmt: skip

    def _task(
        self, name: str, definition: dict[str, Any], workloads: list[dict[str, Any]]
    ) -> tuple[Task, int]:
        source = str(definition.get("reference") or "")
        if "def run(" not in source:
            raise _Unusable("its definition has no reference with a function run")
        for which, spec in (definition["inputs"] | definition.get("outputs", {})).items():
            if spec["dtype"] not in DTYPES:
                raise _Unusable(f"{which} is {spec['dtype']}, which the judge cannot carry")
        if not workloads:
            raise _Unusable("has no workloads in this checkout")
        drawn, reasons = [], []
        for workload in workloads:
            try:
                drawn.append(self._drawn(definition, workload))
            except _Unusable as error:
                reasons.append(str(error))
        fine = sorted((each for each in drawn if each.bytes <= _LARGE_BYTES), key=lambda d: d.bytes)
        if not fine:
            why = max(set(reasons), key=reasons.count) if reasons else "all are too large"
            raise _Unusable(f"none of its {len(workloads)} workloads can be drawn: {why}")
        chosen, made = _choose(fine)
        cases = "".join(f"    {each.code},\n" for each in chosen)
        structure = ("probabilities",) if definition.get("op_type") == "sampling" else ()
        task = Task(
            name=name, source=f"{source.strip()}\n{_DRAWING}{cases}]\n", entry="run",
            workloads=made, structure=structure,
        )  # fmt: skip
        return task, len(workloads) - len(drawn)

    def _drawn(self, definition: dict[str, Any], workload: dict[str, Any]) -> _Drawn:
        axes = {
            key: each["value"] for key, each in definition["axes"].items() if "value" in each
        } | dict(workload.get("axes") or {})
        given = workload.get("inputs") or {}
        parts, total = [], 0
        for key, spec in definition["inputs"].items():
            said = given.get(key) or {"type": "random"}
            shape = None if spec["shape"] is None else _shape(spec["shape"], axes)
            total += math.prod(shape or ()) * _WIDTHS[spec["dtype"]]
            parts.append(f"{key!r}: {self._input(key, spec['dtype'], shape, said, definition)}")
        variable = {key: axes[key] for key in workload.get("axes") or {}}
        return _Drawn(
            said=", ".join(f"{key}={value}" for key, value in variable.items()) or "constant",
            bytes=total, code=f"lambda: {{{', '.join(parts)}}}",
        )  # fmt: skip

    def _input(
        self, key: str, dtype: str, shape: list[int] | None, said: dict[str, Any],
        definition: dict[str, Any],
    ) -> str:  # fmt: skip
        kind = said.get("type", "random")
        if kind == "scalar":
            return repr(said["value"])
        if kind == "safetensors":
            return self._stored(key, dtype, shape or [], said)
        if shape is None:
            return "1.0" if "float" in dtype else "1"
        if not ("float" in dtype or dtype == "bool"):
            raise _Unusable(f"{key} holds indices or lengths, and the workload says random")
        drawn = f"_drawn(torch.{dtype}, {', '.join(map(str, shape))})"
        if definition.get("op_type") == "sampling" and key == "probs":
            return f"torch.softmax({drawn}, dim=-1)"
        return drawn

    def _stored(self, key: str, dtype: str, shape: list[int], said: dict[str, Any]) -> str:
        path = self._root / str(said["path"]).removeprefix("./")
        raw = _safetensor(path, str(said["tensor_key"]), dtype, shape)
        if len(raw) > _EMBED_BYTES:
            if "float" in dtype:
                return f"_drawn(torch.{dtype}, {', '.join(map(str, shape))})"
            raise _Unusable(f"{key} is {len(raw)} bytes of a trace, too many for a task's text")
        text = base64.b64encode(zlib.compress(raw, 9)).decode()
        return f"_stored({text!r}, torch.{dtype}, {tuple(shape)})"


def _broken(lines: list[str], numbers: list[int]) -> str:
    """What is wrong with the lines of a file of workloads that cannot be read."""
    if lines[0].startswith("version https://git-lfs"):
        return "is a pointer of Git LFS, not the file: git lfs pull"
    few = ", ".join(map(str, numbers[:_NAMED]))
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    lone = len(numbers) == 1
    return (
        f"line{'' if lone else 's'} {few}{more} {'is no workload' if lone else 'are no workloads'}"
    )


def _shape(names: list[str | int], axes: dict[str, int]) -> list[int]:
    try:
        return [each if isinstance(each, int) else int(axes[each]) for each in names]
    except (KeyError, TypeError) as error:
        raise _Unusable(f"the workload gives no size for axis {error}") from error


def _safetensor(path: Path, key: str, dtype: str, shape: list[int]) -> bytes:
    """Read one tensor: a length, a JSON header with offsets, then the bytes."""
    if not path.is_file():
        raise _Unusable("its trace's safetensors files are missing: git lfs pull")
    try:
        file = path.open("rb")
    except OSError as error:
        raise _Unusable(f"cannot read {path.name}: {error.strerror}") from error
    with file:
        size = int.from_bytes(file.read(8), "little")
        if size > 100 << 20:
            raise _Unusable(f"{path.name} is a pointer of Git LFS or no safetensors file: lfs pull")
        try:
            header = json.loads(file.read(size))
            said = header[key]
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError) as error:
            raise _Unusable(f"{path.name} holds no tensor {key!r}") from error
        if _STORED.get(said["dtype"]) != dtype or list(said["shape"]) != shape:
            raise _Unusable(
                f"{key} of {path.name} is {said['dtype']} {said['shape']}, not {dtype} {shape}"
            )
        first, last = said["data_offsets"]
        file.seek(8 + size + first)
        return file.read(last - first)


def _choose(fine: list[_Drawn]) -> tuple[list[_Drawn], tuple[Workload, ...]]:
    """Time the smallest, the middle one and the largest; check some of the others."""
    timed = list(dict.fromkeys([fine[0], fine[len(fine) // 2], fine[-1]]))
    rest = [each for each in fine if each not in timed]
    held_out = rest[:: max(1, len(rest) // _HELD_OUT)][:_HELD_OUT]
    chosen = timed + held_out
    workloads = []
    for index, each in enumerate(chosen):
        where = "gpu: " if 0 < index < len(timed) and each.bytes > _SMALL_BYTES else ""
        workloads.append(
            Workload(
                name=f"{where}{index + 1}: {each.said}", arguments=(("case", index),),
                held_out=index >= len(timed),
            )
        )  # fmt: skip
    return chosen, tuple(workloads)
