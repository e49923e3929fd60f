"""ncu on a candidate that passed: how well its kernels use the device, by the device's counters.

It is feedback for whoever writes the next candidate, and decides nothing. Where ncu is not
installed, or the driver keeps its counters to itself, there is nothing to say and nothing is said.
"""

import csv
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.nvcc.watched import can_be_watched, watched
from kernelsmith.evaluate.sandbox.errors import ChildFailed
from kernelsmith.evaluate.sandbox.process import Zygote

TIME = "gpu__time_duration.sum"
METRICS = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "DRAM {:.0f} % of peak",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "SM {:.0f} % of peak",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy {:.0f} %",
    "launch__registers_per_thread": "{:.0f} registers",
    "lts__t_sector_hit_rate.pct": "L2 hits {:.0f} %",
}
"""By ncu's names, each with the words for it."""
REPORT = "metrics.csv"
_LAUNCHES = 32
_KERNELS = 3
PARAMETERS = Path("/proc/driver/nvidia/params")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One kernel, over all its launches."""

    kernel: str
    nanoseconds: float
    metrics: dict[str, float]
    """By ncu's names; those that it could not read are left out."""

    def __str__(self) -> str:
        return ", ".join(
            words.format(self.metrics[name])
            for name, words in METRICS.items()
            if name in self.metrics
        )


def find_ncu(parameters: Path = PARAMETERS) -> Path | None:
    """On the path, where the driver lets others than root read its counters."""
    found = shutil.which("ncu")
    return Path(found) if found and counters_permitted(parameters) else None


def counters_permitted(parameters: Path = PARAMETERS) -> bool:
    """What the driver says of its counters; where it says nothing, one has to try."""
    try:
        return "RmProfilingAdminOnly: 1" not in parameters.read_text()
    except OSError:
        return True


def command(tool: Path) -> list[str]:
    """The tool's command line, up to the program that it watches."""
    return [
        str(tool), "--csv", "--page", "raw", "--print-units", "base", "--log-file", REPORT,
        "--force-overwrite", "--launch-count", str(_LAUNCHES), "--metrics",
        ",".join([TIME, *METRICS]),
    ]  # fmt: skip


def profiled(
    zygote: Zygote, tool: Path, task: Task, source: str, *, devices: Sequence[Path] = (),
    readable: Sequence[Path] = (),
) -> list[Profile] | None:  # fmt: skip
    """The kernels that take longest; nothing at all where the tool could not look."""
    if not can_be_watched(task, source):
        return []
    try:
        said = watched(
            zygote, command(tool), task, source, devices=devices,
            readable=[*readable, *_installation(tool)], outputs=[REPORT],
        )  # fmt: skip
    except ChildFailed:
        return None
    return read(said.files.get(REPORT, ""))[:_KERNELS] if said.status == 0 else None


def read(report: str) -> list[Profile]:
    """Read what ``--csv --page raw`` wrote: a head, a row of units, a row for each launch.

    Lines of the tool's own stand between them, with ``==`` in front. Launches of one kernel are
    taken together, weighted by their times; the longest comes first.
    """
    lines = [line for line in report.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    launches: dict[str, list[dict[str, float]]] = {}
    for row in rows[1:]:
        values = {name: _number(row.get(name)) for name in (TIME, *METRICS)}
        known = {name: value for name, value in values.items() if value is not None}
        if row.get("Kernel Name") and known.get(TIME, 0.0) > 0:
            launches.setdefault(row["Kernel Name"], []).append(known)
    found = [_together(kernel, each) for kernel, each in launches.items()]
    return sorted(found, key=lambda each: -each.nanoseconds)


def _together(kernel: str, launches: Sequence[dict[str, float]]) -> Profile:
    metrics = {}
    for name in METRICS:
        seen = [(each[name], each[TIME]) for each in launches if name in each]
        if seen:
            metrics[name] = sum(value * ns for value, ns in seen) / sum(ns for _, ns in seen)
    total = sum(each[TIME] for each in launches)
    return Profile(kernel=kernel, nanoseconds=total, metrics=metrics)


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None  # such as n/a
    return value if math.isfinite(value) else None


def _installation(tool: Path) -> list[Path]:
    """Folders that the tool is spread over: what is on the path may only be its starter."""
    home = tool.resolve().parent.parent
    places = [home, Path("/opt/nvidia")]
    return [each for each in places if each.exists() and each not in (Path("/"), Path("/usr"))]
