"""MultiKernelBench: 300 KernelBench files by category, and NPU tasks whose cases stand in JSON."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry, Wanted, every
from kernelsmith.bench.suites.calls import part
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import dtype_of, missing_package, promised, task_from_text
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import read_source

_HELD_OUT = 4
_LARGE_BYTES = 512 << 20
_SMALL_BYTES = 8 << 20
_WIDTHS = {
    "float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
_CASES = '''

import io as _io

__file__ = "task.py"
_CASES = {cases}
_chosen = 0


def open(path, *_, **__):
    """Hand the recipe the one case that is asked for, instead of its file."""
    return _io.StringIO(_CASES[_chosen])


def get_inputs(case=0):
    """Draw the arguments of one of the suite's cases."""
    global _chosen
    _chosen = case
    return get_input_groups()[0]
'''
_TRYING = """

_names = {{}}
exec({code!r}, _names)


def get_workloads():
    model = Model(*get_init_inputs()).eval()

    def reference(*arguments):
        return model(*arguments)

    def play(stand_in):
        for case in {cases}:
            try:
                stand_in(*get_inputs(case))
            except BaseException:  # the survey tries each call again and says what is wrong
                continue

    return _names["survey"](reference, play, None, lambda _, arguments, __: [*arguments])
"""


class MultiKernelBench:
    """A checkout of wzzll123/MultiKernelBench."""

    name = "multikernelbench"

    def __init__(self, path: Path, wanted: Wanted = every) -> None:
        self._wanted = wanted
        self._root = path / "reference" if (path / "reference").is_dir() else path
        if not any(self._root.glob("*/*.py")):
            raise UsageError(f"{str(path)!r} holds no reference/*/*.py")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield category by category."""
        with Surveyor() as surveyor:
            for path in sorted(self._root.glob("*/*.py")):
                if not path.name.startswith("_") and self._wanted(self._id(path)):
                    yield self._entry(path, surveyor)

    def _id(self, path: Path) -> str:
        return f"{self.name}/{path.parent.name}/{path.stem}"

    def _entry(self, path: Path, surveyor: Surveyor) -> Entry | Absent:
        category, stem, name = path.parent.name, path.stem, self._id(path)
        try:
            source = read_source(path, "task")
            if package := missing_package(source):
                return Absent(id=name, reason=f"needs {package}, which is not installed")
            if "def get_input_groups" in source:
                task, dtype = _from_cases(stem, source, path.with_suffix(".json"), surveyor)
            else:
                task, dtype = task_from_text(stem, source), dtype_of(source)
        except (UsageError, SyntaxError) as error:
            return Absent(id=name, reason=str(error))
        return Entry(
            id=name, task=promised(task, stem), level="", category=category,
            family="model" if category == "arch" else family_of(stem, category), dtype=dtype,
        )  # fmt: skip


def _from_cases(stem: str, source: str, path: Path, surveyor: Surveyor) -> tuple[Task, str]:
    """Embed the cases: a task is one text, and a sandbox has no folder beside it."""
    if not path.is_file():
        raise UsageError(f"its cases are missing: no {path.name}")
    lines = [line.strip() for line in read_source(path, "case").splitlines() if line.strip()]
    try:
        sizes = [(index, *_size(json.loads(line))) for index, line in enumerate(lines)]
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"{path.name} is broken: {error}") from error
    fine = [each for each in sizes if 0 < each[1] <= _LARGE_BYTES]
    if not fine:
        raise UsageError("none of its cases takes a tensor, or all are too large")
    text = source + _CASES.format(cases=json.dumps(lines, indent=4))
    task = task_from_text(stem, text)
    small = [each for each in fine if each[1] <= _SMALL_BYTES] or [min(fine, key=_bytes)]
    bad = _tried(task, [each[0] for each in small], surveyor)
    if len(bad) == len(small):
        raise UsageError(f"no call of it can be judged: it {bad[small[0][0]]}")
    fine = [each for each in fine if each[0] not in bad]
    small = [each for each in fine if each[1] <= _SMALL_BYTES]
    timed = list(dict.fromkeys([max(group, key=_bytes) for group in (small, fine) if group]))
    rest = [each for each in fine if each not in timed]
    held_out = rest[:: max(1, len(rest) // _HELD_OUT)][:_HELD_OUT]
    workloads = [_workload(each, prefix=len(timed) > 1) for each in timed]
    workloads += [replace(_workload(each, prefix=False), held_out=True) for each in held_out]
    return replace(task, workloads=tuple(workloads)), timed[0][2]


def _tried(task: Task, cases: list[int], surveyor: Surveyor) -> dict[int, str]:
    """Run small cases on the processor; say what is wrong with those that cannot be judged."""
    source = task.source + _TRYING.format(code=part("survey"), cases=cases)
    calls = surveyor.calls(replace(task, source=source)).tests
    found = {case: "made no call" for case in cases[len(calls) :]}
    for case, call in zip(cases, calls, strict=False):
        if call.bad or call.random:
            found[case] = call.bad or "draws random numbers"
    return found


def _bytes(case: tuple[int, int, str, str]) -> int:
    return case[1]


def _size(case: dict[str, list[dict[str, object]]]) -> tuple[int, str, str]:
    """Bytes of a case's tensors, the first one's dtype, and both in words."""
    total, dtype, said = 0, "", []
    for each in case.get("inputs", []):
        kind = str(each.get("dtype", "float32"))
        several = each.get("shapes")
        for shape in several if isinstance(several, list) else [each.get("shape")]:
            if isinstance(shape, list) and all(isinstance(n, int) for n in shape):
                total += math.prod(shape) * _WIDTHS.get(kind, 4)
                dtype = dtype or kind
                said.append("x".join(map(str, shape)))
    return total, dtype, ", ".join(said)[:80]


def _workload(case: tuple[int, int, str, str], *, prefix: bool) -> Workload:
    index, size, dtype, said = case
    where = ("cpu: " if size <= _SMALL_BYTES else "gpu: ") if prefix else ""
    return Workload(name=f"{where}case {index + 1}: {said} {dtype}", arguments=(("case", index),))
