"""The doctor's findings: which backends work here, behind which walls, and how quietly."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass

from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.backend import known_backends, load_backend
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.guards.sampler import open_sampler
from kernelsmith.evaluate.machine import Machine, measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at."""

    name: str
    usable: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok ' if self.usable else 'no '} {self.name}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that ``doctor`` says."""

    backends: tuple[Finding, ...]
    tools: tuple[Finding, ...]
    walls: tuple[Finding, ...]
    machine: Machine | None

    @property
    def is_usable(self) -> bool:
        """Whether any backend with hardware works."""
        return any(each.usable for each in self.backends if each.name != "null")

    def sections(self) -> list[tuple[str, list[str]]]:
        """Titles and lines, for a person."""
        found = [
            ("backends", [str(each) for each in self.backends]),
            ("tools", [str(each) for each in self.tools]),
            ("sandbox and sampler", [str(each) for each in self.walls]),
        ]
        if self.machine is not None:
            noise = self.machine.noise
            found.append(
                (
                    "measured here, now",
                    [
                        f"clock: the same program against itself gives {noise} "
                        f"(interval {noise.width:.1%} wide)",
                        f"memory: {self.machine.bandwidth_gbs:.1f} GB/s (x + y, 201 MB)",
                        f"arithmetic: {self.machine.peak_gflops:.0f} GFLOP/s (float32, 1024-cubed)",
                    ],
                )
            )
        return found

    def to_json(self) -> dict[str, object]:
        """As plain values, for machines."""
        return asdict(self)


def diagnose(*, measured: bool, show: Callable[[str], None]) -> Diagnosis:
    """Look at everything; measure what has to be measured unless told not to."""
    show("looking for backends ...")
    backends = tuple(_backend(name) for name in sorted(known_backends()))
    walls: tuple[Finding, ...] = ()
    machine: Machine | None = None
    if any(each.name == "cpu" and each.usable for each in backends):
        cpu = CpuBackend()
        try:
            walls = _walls(cpu)
            if measured:
                show("measuring noise, bandwidth and peak ...")
                machine = measure(cpu)
        finally:
            cpu.close()
    return Diagnosis(backends=backends, tools=_tools(), walls=walls, machine=machine)


def _backend(name: str) -> Finding:
    try:
        backend = load_backend(name)
        try:
            device = backend.device()
        finally:
            backend.close()
    except (SmithError, EvaluationLost) as error:
        return Finding(name=name, usable=False, detail=str(error))
    versions = ", ".join(f"{key} {value}" for key, value in device.versions)
    limits = "" if backend.timed else "checks only, nothing is timed"
    detail = "; ".join(each for each in (str(device), versions, limits) if each)
    return Finding(name=name, usable=True, detail=detail)


def _tools() -> tuple[Finding, ...]:
    return tuple(_tool(name) for name in ("g++", "clang++", "nvcc", "nvidia-smi", "mxcc"))


def _tool(name: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name=name, usable=False, detail="not on this machine")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return Finding(name=name, usable=done.returncode == 0, detail=lines[0] if lines else path)


def _walls(cpu: CpuBackend) -> tuple[Finding, ...]:
    level = cpu.device().sandbox
    sampler = open_sampler(os.getpid())
    if sampler is None:
        coverage = Finding(
            name="coverage", usable=False,
            detail="neither perf events nor ptrace are allowed; coverage cannot be judged",
        )  # fmt: skip
    else:
        with sampler:
            coverage = Finding(
                name="coverage", usable=True, detail=f"sampled from outside by {sampler.method}"
            )
    return (
        Finding(name="sandbox", usable=not level.startswith("limits-only"), detail=level),
        coverage,
    )
