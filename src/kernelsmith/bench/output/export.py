"""Our records in KernelBench's own layout, so that its scripts read them.

``runs/NAME_levelN/eval_results.json`` holds one list of samples per problem,
``runs/NAME_levelN/level_N_problem_P_sample_S_kernel.py`` the kernels, and
``results/timing/HARDWARE/NAME_levelN_BASELINE.json`` the baseline that was timed beside them. Its
scripts divide one by the other, so each sample's ``runtime`` is the baseline's time over our
speed-up: they arrive at our ratio, unrounded. Samples are our seeds.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.bench.ledger import Results
from kernelsmith.bench.numbers.metrics import by_system, by_task
from kernelsmith.bench.numbers.scores import is_built
from kernelsmith.bench.record import Beside, Record
from kernelsmith.domain.codec import Json
from kernelsmith.errors import UsageError

_ENTRY = re.compile(r"kernelbench/level(\d+)/(\d+)")
_FILES = {
    "eager": "baseline_time_torch",
    "compile": "baseline_time_torch_compile_inductor_default",
    "max-autotune": "baseline_time_torch_compile_inductor_max-autotune",
    "graph": "baseline_time_torch_cudagraphs",
}
"""What KernelBench calls the baselines that it has names for, and the one that it has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One system on one level, as KernelBench's scripts find it."""

    name: str
    level: int
    hardware: str
    baseline: str
    problems: int
    kernels: int

    @property
    def command(self) -> str:
        """How KernelBench's own analysis is asked about it, from its checkout."""
        return (
            f"python scripts/benchmark_eval_analysis.py run_name={self.name} level={self.level} "
            f"hardware={self.hardware} baseline={self.baseline}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written, and what could not be."""

    folder: Path
    runs: tuple[Run, ...]
    left_out: tuple[str, ...] = ()
    """Why some records are not in it, each in a line."""

    @property
    def said(self) -> str:
        """For the user: a line on what was written, and how each run is looked at."""
        problems = sum(run.problems for run in self.runs)
        rest = f"; {'; '.join(self.left_out)}" if self.left_out else ""
        lines = [f"{self.folder}: {len(self.runs)} runs, {problems} problems{rest}"]
        if self.runs:
            lines.append(
                "KernelBench's own analysis, in its checkout with these two folders in it:"
            )
        return "\n".join([*lines, *(f"  {run.command}" for run in self.runs)])


def kernelbench(
    results: Results, folder: Path, *, baseline: str = "eager", how: str = "device"
) -> Exported:
    """Write every KernelBench record beside one baseline; times are the device's, whatever ``how``.

    Raises:
        UsageError: No record is of KernelBench, or the folder cannot be written.
    """
    records = [each for each in results.records if _ENTRY.fullmatch(each.entry)]
    if not records:
        raise UsageError(
            "KernelBench's layout holds KernelBench's problems, and none of these records is of "
            "one (their entries would read 'kernelbench/level1/23')"
        )
    left_out = []
    if others := len(results.records) - len(records):
        left_out.append(f"{others} records of other suites left out")
    if nameless := [each for each in records if not each.name]:
        left_out.append(f"{len(nameless)} records do not name their problem's file; left out")
        records = [each for each in records if each.name]
    unread: list[str] = []
    runs = []
    try:
        for system, own in by_system(records).items():
            for level in sorted({_place(each)[0] for each in own}):
                of_level = [each for each in own if _place(each)[0] == level]
                runs.append(
                    _run(results, folder, system, level, of_level, baseline, how, unread)
                )  # fmt: skip
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    if unread:
        left_out.append(f"{len(unread)} kernels' sources are not there any more ({unread[0]})")
    return Exported(folder=folder, runs=tuple(runs), left_out=tuple(left_out))


def _run(
    results: Results, folder: Path, system: str, level: int, records: Sequence[Record],
    baseline: str, how: str, unread: list[str],
) -> Run:  # fmt: skip
    name = f"{_word(system)}_level{level}"
    target = folder / "runs" / name
    target.mkdir(parents=True, exist_ok=True)
    kernels = 0
    samples: dict[int, list[Json]] = {}
    times: dict[str, Json] = {}
    for own in by_task(records).values():
        number = _place(own[0])[1]
        beside = next((each.over(baseline) for each in own if each.over(baseline)), None)
        base_ms = None if beside is None else _baseline_ms(beside)
        # Its scripts read sample 0. They leave problems without a baseline out of fast_p, so one
        # that failed has an entry (whose time they never use), and one that could not be timed none
        if not own[0].passed or (base_ms and own[0].speedup(baseline, how=how)):
            times[f"{own[0].name}.py"] = _stats(base_ms, own[0], beside)
        for index, record in enumerate(own):
            samples.setdefault(number, []).append(
                _sample(record, index, base_ms, baseline, how)
            )  # fmt: skip
            if record.winner is None:
                continue
            try:
                source = results.source_of(record)
            except UsageError as error:
                unread.append(str(error))
                continue
            file = target / f"level_{level}_problem_{number}_sample_{index}_kernel.py"
            file.write_text(source, encoding="utf-8", errors="surrogatepass")
            kernels += 1
    _write(target / "eval_results.json", {str(key): samples[key] for key in sorted(samples)})
    hardware = _word(records[0].device.name)
    file_name = f"{name}_{_FILES.get(baseline, baseline)}"
    timing = folder / "results" / "timing" / hardware
    timing.mkdir(parents=True, exist_ok=True)
    _write(timing / f"{file_name}.json", {f"level{level}": times})
    return Run(
        name=name, level=level, hardware=hardware, baseline=file_name, problems=len(samples),
        kernels=kernels,
    )  # fmt: skip


def _sample(
    record: Record, index: int, base_ms: float | None, baseline: str, how: str
) -> dict[str, Json]:
    ratio = record.speedup(baseline, how=how)
    runtime = -1.0
    if ratio is not None and base_ms is not None:
        runtime = base_ms / ratio.value
    metadata: dict[str, Json] = {
        "kernelsmith": {
            "verdict": None if record.verdict is None else record.verdict.value,
            "speedup": None if ratio is None else [ratio.value, ratio.low, ratio.high],
            "how": how, "seed": record.seed, "judge": record.judge,
            "labels": [label.name.value for label in record.labels], "note": record.note,
        },
        "hardware": record.device.name,
        "device": str(record.device),
    }  # fmt: skip
    if record.message:
        metadata["error"] = record.message
    return {
        "sample_id": index,
        "compiled": is_built(record),
        "correctness": record.passed,
        "metadata": metadata,
        "runtime": runtime,
        "runtime_stats": {} if runtime < 0 else {"mean": runtime, "hardware": record.device.name,
                                                 "device": str(record.device)},
    }  # fmt: skip


def _baseline_ms(beside: Beside) -> float | None:
    """The baseline's time in milliseconds: geometric mean over workloads; none if not timed."""
    logs = [math.log(each.baseline_us / 1000) for each in beside.workloads]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def _stats(mean: float | None, record: Record, beside: Beside | None) -> dict[str, Json]:
    return {
        "mean": mean, "num_trials": 0 if beside is None else beside.tests,
        "hardware": record.device.name, "device": str(record.device),
    }  # fmt: skip


def _place(record: Record) -> tuple[int, int]:
    found = _ENTRY.fullmatch(record.entry)
    assert found is not None, "only KernelBench's records come here"
    return int(found[1]), int(found[2])


def _word(name: str) -> str:
    """A name that is one word in a shell and in a path."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_.") or "unnamed"


def _write(path: Path, body: Mapping[str, Json]) -> None:
    path.write_text(json.dumps(body, indent=4, allow_nan=False) + "\n", encoding="utf-8")
