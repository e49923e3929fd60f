"""KernelBench-X: 176 functions in 15 categories, with bounds of its own by dtype.

Handled: its timing inputs are never checked (here they are), its speed-ups are against stored times
of another machine (here the reference is timed in the same run), its tests run the candidate before
the reference in one process (here they are apart).
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry, Wanted, every
from kernelsmith.bench.suites.calls import Made, Script, Unusable, make
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import records_in
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.domain.task import Task, Tolerance
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import read_source

_TOLERANCE = {
    "float64": 1e-5, "float32": 1e-5, "float16": 5e-3, "bfloat16": 5e-3,
}  # fmt: skip
_FOREIGN = frozenset({"data_utils", "kernelbenchx", "sys", "os"})
_FREE = {"svd", "qr", "eig", "fused_svd_reconstruct", "ldl_factor", "lu"}


class KernelBenchX:
    """A checkout of BonnieW05/KernelBenchX."""

    name = "kernelbench-x"

    def __init__(self, path: Path, wanted: Wanted = every) -> None:
        self._root, self._wanted = path, wanted
        self._list = path / "data" / "kernelbenchx_v1.json"
        if not self._list.is_file():
            raise UsageError(f"{str(path)!r} is no checkout of KernelBenchX: no {self._list.name}")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield the published tasks in their own order, then files that the list leaves out."""
        listed = records_in(self._list, "file")
        folder = self._root / "data" / "kernelbenchx"
        helpers = self._root / "utils" / "data_utils.py"
        text = read_source(helpers, "helper") if helpers.exists() else ""
        with Surveyor() as surveyor:
            for record in listed:
                if self._wanted(self._id(str(record["file"]))):
                    yield self._entry(record, folder, text, surveyor)
        files = {str(record["file"]) for record in listed}
        for path in sorted(folder.glob("*/*.py")):
            if (file := f"{path.parent.name}/{path.name}") not in files:
                yield Absent(
                    id=self._id(file),
                    reason="is in the folder and not in kernelbenchx_v1.json: not published",
                )

    def _id(self, file: str) -> str:
        return f"{self.name}/{file.removesuffix('.py')}"

    def _entry(
        self, record: dict[str, object], folder: Path, helpers: str, surveyor: Surveyor
    ) -> Entry | Absent:
        file = str(record["file"])
        category, _, stem = file.removesuffix(".py").partition("/")
        name, level = self._id(file), f"difficulty {record.get('difficulty', '?')}"
        path = folder / file
        if not path.exists():
            reason = f"the list names {file}, which is not in the checkout"
            return Absent(id=name, reason=reason, level=level)
        timing = self._root / "metrics" / "golden_metrics" / f"{stem}_perf.py"
        try:
            script = Script(
                name=stem, text=read_source(path, "task"), helpers=helpers, foreign=_FOREIGN,
                timing=read_source(timing, "timing") if timing.exists() else None,
            )  # fmt: skip
            made = make(script, surveyor, _TOLERANCE)
        except (Unusable, UsageError) as error:
            return Absent(id=name, reason=str(error), level=level)
        task, notes = _bounded(made, record)
        if stem in _FREE:
            notes.append("sign and phase of vectors are free in mathematics, not here")
        return Entry(
            id=name, task=task, level=level, category=category,
            family=family_of(stem, category), dtype=made.dtype, note="; ".join(notes),
        )  # fmt: skip


def _bounded(made: Made, record: dict[str, object]) -> tuple[Task, list[str]]:
    """Apply the bounds of the six quantised tasks: a kernel may compute in low precision there."""
    notes = list(made.notes)
    bounds = record.get("precision_thresholds")
    if not isinstance(bounds, dict):
        return made.task, notes
    bound = float(bounds.get("rmse", 0.1))
    notes.append(
        "quantised: the suite asks for "
        + ", ".join(f"{name} {value}" for name, value in bounds.items())
        + "; here rows may be off by 6 % (bfloat16's budget) and elements by the rmse"
    )
    loose = Tolerance(atol=bound, rtol=bound)
    return replace(made.task, compute_dtype="bfloat16", tolerance=loose), notes
