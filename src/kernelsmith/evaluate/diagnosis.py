"""The doctor's findings: which backends and GPUs work here, behind which walls, and how quietly."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass

from kernelsmith.errors import BackendUnavailable, EvaluationLost, SmithError
from kernelsmith.evaluate.backend import known_backends, load_backend
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.cuda.nvml import LIBRARY, ComputeMode, Gpu, Nvml, mps_running
from kernelsmith.evaluate.guards.sampler import open_sampler
from kernelsmith.evaluate.machine import Machine, measure
from kernelsmith.evaluate.nvcc.cute import PACKAGE, cute_version
from kernelsmith.evaluate.nvcc.profiler import PARAMETERS, counters_permitted
from kernelsmith.evaluate.torch_build import installed_torch, torch_build
from kernelsmith.evaluate.untested import CUTE, UNTESTED
from kernelsmith.kernels.toolkit import find_toolkit


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
    gpus: tuple[Finding, ...]
    tools: tuple[Finding, ...]
    walls: tuple[Finding, ...]
    machine: Machine | None
    untested: tuple[tuple[str, str], ...] = UNTESTED
    """What never ran on its hardware here, each with what there is of it."""

    @property
    def is_usable(self) -> bool:
        """Whether any backend with hardware works."""
        return any(each.usable for each in self.backends if each.name != "null")

    def sections(self) -> list[tuple[str, list[str]]]:
        """Titles and lines, for a person."""
        found = [
            ("backends", [str(each) for each in self.backends]),
            ("NVIDIA GPUs", [str(each) for each in self.gpus]),
            ("tools", [str(each) for each in self.tools]),
            ("sandbox and sampler", [str(each) for each in self.walls]),
            ("untested: never ran on its hardware", [f"{a}: {b}" for a, b in self.untested]),
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
    return Diagnosis(
        backends=backends, gpus=look_at_gpus(), tools=_tools(), walls=walls, machine=machine
    )


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
    runs = bool(getattr(backend, "runs", True))
    limits = "" if backend.timed or not runs else "checks only, nothing is timed"
    shown = str(device) if runs else device.name
    detail = "; ".join(each for each in (shown, versions, limits) if each)
    return Finding(name=name, usable=runs, detail=detail)


def look_at_gpus(library: str = LIBRARY) -> tuple[Finding, ...]:
    """Ask the driver about every GPU; one line says why where there is none to ask about."""
    try:
        with Nvml(library) as nvml:
            return (*(found for gpu in nvml.devices() for found in _gpu(gpu)), _mps())
    except BackendUnavailable as error:
        return (Finding(name="gpu", usable=False, detail=str(error)),)


def _gpu(gpu: Gpu) -> tuple[Finding, ...]:
    name = f"gpu {gpu.index}"
    memory, mode, now = gpu.memory(), gpu.compute_mode(), gpu.snapshot()
    clocks = "; ".join(
        (
            f"processors {_mhz(now.sm_mhz)} of {_mhz(gpu.max_sm_mhz)}",
            f"memory {_mhz(now.memory_mhz)} of {_mhz(gpu.max_memory_mhz)}",
            f"held down by {', '.join(sorted(now.throttled))}"
            if now.throttled
            else "not held down",
        )
    )
    shared = mode in (None, ComputeMode.DEFAULT)
    how = mode.value if mode is not None else "the driver does not say"
    remedy = "" if shared else "; the judge needs a process for each side: nvidia-smi -c DEFAULT"
    speed = gpu.bandwidth_bytes_s
    bandwidth = (
        "the driver does not say"
        if speed is None
        else f"{speed / 1e9:,.0f} GB/s in theory (clock and width; not measured)"
    )
    return (
        Finding(name=name, usable=True,
                detail=f"{gpu.name}, {gpu.uuid}, driver {gpu.driver_version}"),
        Finding(name=f"{name} memory", usable=True,
                detail=f"{memory.free / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"),
        Finding(name=f"{name} compute mode", usable=shared, detail=f"{how}{remedy}"),
        Finding(name=f"{name} clocks", usable=not now.throttled, detail=clocks),
        Finding(name=f"{name} bandwidth", usable=speed is not None, detail=bandwidth),
    )  # fmt: skip


def _mhz(clock: int | None) -> str:
    return "unknown" if clock is None else f"{clock} MHz"


def _mps() -> Finding:
    if mps_running():
        detail = "running; nothing is timed beside it: echo quit | nvidia-cuda-mps-control"
        return Finding(name="mps", usable=False, detail=detail)
    return Finding(name="mps", usable=True, detail="not running")


def _tools() -> tuple[Finding, ...]:
    names = ("g++", "clang++", "nvcc", "nvidia-smi", "compute-sanitizer", "ncu", "mxcc", "mx-smi")
    return (*(_tool(name) for name in names), _nvrtc(), *_counters(), _cute(), _torch())


def _counters() -> tuple[Finding, ...]:
    """Said only where there is a driver to ask."""
    if not PARAMETERS.exists():
        return ()
    permitted = counters_permitted()
    detail = "open to ncu" if permitted else "the driver keeps them to root; ncu is not run"
    return (Finding(name="performance counters", usable=permitted, detail=detail),)


def _cute() -> Finding:
    version = cute_version()
    detail = f"{version}; {CUTE}" if version else f"not installed: pip install {PACKAGE}"
    return Finding(name="CuTe DSL", usable=version is not None, detail=detail)


def _torch() -> Finding:
    facts = installed_torch()
    if not facts.version:
        return Finding(name="torch", usable=False, detail="not installed")
    detail = f"{facts.version}, built for {torch_build(facts)}"
    return Finding(name="torch", usable=True, detail=detail)


def _nvrtc() -> Finding:
    toolkit = find_toolkit()
    missing = toolkit.missing(fast=True)
    detail = missing or f"{toolkit.nvrtc_version()}, {toolkit.nvrtc}"
    return Finding(name="nvrtc", usable=missing is None, detail=detail)


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
