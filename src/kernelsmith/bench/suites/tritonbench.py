"""TritonBench: T, aligned with PyTorch operators, and G, Triton kernels from GitHub.

Handled: its comparison of printed text, which is empty for nearly all tasks (here values are
compared), its unseeded tests, its dropping of speed-ups above ten, its golden times of an A100.
"""

from collections.abc import Iterator
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry, Wanted, every
from kernelsmith.bench.suites.calls import Script, Unusable, make
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import records_in
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.triton import InterpreterBackend
from kernelsmith.evaluate.tasks import read_source

_FOREIGN = frozenset({"TritonBench_v1", "TorchBench_v1"})


class _SurveyInterpreter(InterpreterBackend):
    """Where Triton can be loaded without a GPU, with what tensors without memory need."""

    _preload = (*InterpreterBackend._preload, "torch._dynamo")


class _TritonBench:
    """One half of a checkout of thunlp/TritonBench."""

    name: str
    _folder: str
    _metrics: str
    _runs = True

    def __init__(self, path: Path, wanted: Wanted = every) -> None:
        self._root, self._wanted = path, wanted
        self._files = path / "data" / self._folder
        if not self._files.is_dir():
            raise UsageError(f"{str(path)!r} is no checkout of TritonBench: no data/{self._folder}")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield every file of this half, in the order of names."""
        levels = self._levels()
        with self._surveyor() as surveyor:
            for path in sorted(self._files.glob("*.py")):
                if self._wanted(self._id(path)):
                    yield self._entry(path, levels.get(path.name, "?"), surveyor)

    def _id(self, path: Path) -> str:
        return f"{self.name}/{path.stem}"

    def _surveyor(self) -> Surveyor:
        return Surveyor()

    def _levels(self) -> dict[str, str]:
        raise NotImplementedError

    def _entry(self, path: Path, level: str, surveyor: Surveyor) -> Entry | Absent:
        name = self._id(path)
        timing = self._root / "performance_metrics" / self._metrics / "golden_metrics"
        timing /= f"{path.stem}_perf.py"
        try:
            script = Script(
                name=path.stem, text=read_source(path, "task"), foreign=_FOREIGN, run=self._runs,
                timing=read_source(timing, "timing") if timing.exists() else None,
            )  # fmt: skip
            made = make(script, surveyor, {})
        except (Unusable, UsageError) as error:
            return Absent(id=name, reason=str(error), level=f"difficulty {level}")
        return Entry(
            id=name, task=made.task, level=f"difficulty {level}", category="",
            family=family_of(path.stem), dtype=made.dtype, note="; ".join(self._notes(made.notes)),
        )  # fmt: skip

    def _notes(self, notes: tuple[str, ...]) -> tuple[str, ...]:
        return notes


class TritonBenchT(_TritonBench):
    """166 functions whose references are PyTorch."""

    name = "tritonbench-t"
    _folder = "TritonBench_T_v1"
    _metrics = "perf_T"

    def _levels(self) -> dict[str, str]:
        listed = self._root / "data" / "TritonBench_T_v1.jsonl"
        if not listed.is_file():
            return {}
        # Its names are of functions (`torch.div`); a file is named after the last part (`div.py`).
        return _levels_in(listed)


class TritonBenchG(_TritonBench):
    """184 functions whose references are Triton kernels, so the baseline is a kernel too."""

    name = "tritonbench-g"
    _folder = "TritonBench_G_v1"
    _metrics = "perf_G"
    _runs = False

    def _surveyor(self) -> Surveyor:
        return Surveyor(_SurveyInterpreter)

    def _levels(self) -> dict[str, str]:
        listed = self._root / "data" / "TritonBench_G_v1.json"
        if not listed.is_file():
            return {}
        return _levels_in(listed)

    def _notes(self, notes: tuple[str, ...]) -> tuple[str, ...]:
        return ("the reference is a Triton kernel and needs a GPU: ratios are against it", *notes)


def _levels_in(path: Path) -> dict[str, str]:
    """Difficulties by file; the file that ends in .jsonl is one JSON list, too."""
    records = records_in(path, "file", "difficulty")
    return {str(each["file"]): str(each["difficulty"]) for each in records}
