"""The backend on an NVIDIA device: one trusted process, one process per side, one lock."""

import base64
import ctypes
import glob
import hashlib
import os
import platform
import shutil
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from importlib import metadata
from pathlib import Path

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable, EvaluationLost, UsageError
from kernelsmith.evaluate.builder import default_cache
from kernelsmith.evaluate.cuda.floor import Speeds
from kernelsmith.evaluate.cuda.lane import DeviceLane, Settled, remember
from kernelsmith.evaluate.cuda.nvml import ComputeMode, Gpu, Nvml, mps_running
from kernelsmith.evaluate.cuda.oracle import TRYING, DeviceOracle
from kernelsmith.evaluate.cuda.rehearsal import Rehearsals
from kernelsmith.evaluate.cuda.stopwatch import DeviceStopwatch
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.nvcc.profiler import Profile as Profiled
from kernelsmith.evaluate.nvcc.profiler import find_ncu, profiled
from kernelsmith.evaluate.rooms import ROOMS, Rooms, kept_for
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Child, Zygote
from kernelsmith.evaluate.torch_build import triton_version

_WORKER = "kernelsmith.evaluate.worker.cuda"
_PRELOAD = (
    "torch",
    "triton",
    f"{_WORKER}.warm",
    f"{_WORKER}.program",
    f"{_WORKER}.reference",
    f"{_WORKER}.template",
    "kernelsmith.evaluate.worker.compiling",
)
_LIMITS = Limits(memory_bytes=None, scratch_bytes=1 << 30, threads=1024, open_files=4096)
_SHARING = {"pid": "the driver takes two processes of the same number for one and the same"}
_COMPILE_S = 120.0
_TRIES = 2
"""Of ncu, which takes the device for a minute where it does not answer."""


class CudaBackend:
    """Triton kernels on the first visible NVIDIA device."""

    name = "triton"
    timed = True
    references = 1
    stopwatch = DeviceStopwatch
    _preload: tuple[str, ...] = _PRELOAD
    _libraries: tuple[str, ...] = ("torch", "triton")
    """Packages whose versions a timing depends on."""
    _profile = Profile.BUILD
    """Triton starts an assembler and a C compiler in the program's own process; see
    docs/threat-model.md."""
    _rehearses = True
    """Whether its kernels can be compiled without the device."""

    def __init__(self, *, cache: Path | None = None) -> None:
        self._cache = cache or default_cache()
        self._zygote: Zygote | None = None
        self._settled: OrderedDict[str, Settled] = OrderedDict()
        """What autotuners chose and Triton compiled, by source."""
        self._speeds: Speeds | None = None
        self._beside = False
        """Whether the judgement at hand leaves room for others."""
        self.only_beside = False
        """Whether tasks that need the device alone are refused: while many judge, each of them
        would keep all others waiting."""
        self.restless = False
        """Whether it was busy with something else for long, when last looked at."""
        self._avoided: dict[Task, set[str]] = {}
        """What broke a task's reference before; see ``DeviceOracle``."""
        self._uncounted = 0
        """How often in a row ncu could not look."""
        self._rehearsals = Rehearsals(self._environment, self._folders, _LIMITS)
        self._facts: dict[str, object] = {}
        """What rehearsals are told of the device, once it was asked."""
        self._is_first = True
        """Whether no candidate has come yet."""

    @cached_property
    def _nvml(self) -> Nvml:
        return Nvml()

    @cached_property
    def gpu(self) -> Gpu:
        """The device in use."""
        found = self._nvml.devices()
        wanted = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
        for index, each in enumerate(found):
            if wanted in ("", str(index)) or each.uuid.startswith(wanted):
                return each
        raise BackendUnavailable(
            f"CUDA_VISIBLE_DEVICES names {wanted!r}, and no such device is here"
        )

    @cached_property
    def _lock(self) -> DeviceLock:
        return DeviceLock(self.gpu.uuid)

    @cached_property
    def _rooms(self) -> Rooms:
        return Rooms(self.gpu.uuid)

    @property
    def zygote(self) -> Zygote:
        """The process that others are forked from, started when first needed or after its end."""
        if self._zygote is None or not self._zygote.alive:
            if self._zygote is not None:
                self._zygote.close()
            self._zygote = Zygote(preload=self._preload, environment=self._environment())
        return self._zygote

    def device(self) -> Device:
        """Name the device, and every version that a timing depends on."""
        return Device(
            kind="cuda",
            name=self.gpu.name,
            versions=(
                *((name, _version(name)) for name in self._libraries),
                *self._tools(),
                ("driver", self._nvml.driver_version()),
                ("python", platform.python_version()),
                ("kernel", platform.release()),
            ),
            sandbox=self._sandbox,
        )

    def _tools(self) -> tuple[tuple[str, str], ...]:
        """Further versions, of compilers."""
        return ()

    def oracle(self, task: Task) -> DeviceOracle:
        """Open the reference in a process of its own."""
        self._refuse_sharing()
        if self._rehearses and not self._facts:
            self._facts = self._asked_facts()
        _ = self.zygote  # takes seconds and leaves the device alone; what follows does not
        with self._lock.shared() as way:
            child = self._spawn("reference", without=_SHARING)
            child.way = way  # it waits for the driver, and for what the task imports
            try:
                oracle = DeviceOracle(child, task, threads=1)
            except BaseException:
                child.kill()
                raise
            child.way = None
            oracle.avoided = self._avoided.setdefault(task, set())
            return oracle

    def lane(
        self, name: str, *, timeout_s: float, oracle: DeviceOracle | None = None
    ) -> DeviceLane:
        """Open an empty program in a process of its own."""
        assert oracle is not None
        return DeviceLane(
            self._spawn("program", parent=self._parent(name)), oracle, threads=1, name=name,
            timeout_s=timeout_s, template=self._template, settled=self._settled,
        )  # fmt: skip

    def rehearse(self, task: Task, candidate: Candidate, *, timeout_s: float) -> None:
        """Compile a candidate's kernels without the device, for its first process to begin with.

        The first one is not: where only one is judged, nobody waits for it, and the process that
        others are forked from takes seconds.
        """
        if not self._rehearses:
            return
        if not self._facts and self._is_first:
            self._is_first = False
            return
        facts = self._facts = self._facts or self._asked_facts()
        if not facts or candidate.source in self._settled:
            return
        if self._speeds is not None:
            facts = {**facts, "multi_processor_count": self._speeds.processors}
        files = self._rehearsals.compiled(task, candidate, facts, timeout_s=timeout_s)
        if files:
            left = Settled(files=files, seeded=True)
            remember(self._settled, candidate.source, left, only_new=True)

    @property
    def leaves_room(self) -> bool:
        """Whether others may use the device during the judgement at hand."""
        return self._beside

    @property
    def knows_speeds(self) -> bool:
        """Whether ``speeds`` was asked before."""
        return self._speeds is not None

    def speeds(self, oracle: DeviceOracle) -> Speeds:
        """What the device was measured to do, once."""
        if self._speeds is None:
            said = oracle.speeds()
            dram = float(said["dram_bytes_s"])
            self._speeds = Speeds(
                dram_bytes_s=dram,
                l2_bytes_s=max(dram, float(said["l2_bytes_s"])),
                l2_bytes=int(said["l2_bytes"]),
                processors=int(said["processors"]),
                flops={name: float(rate) for name, rate in said["flops"].items()},
            )
        return self._speeds

    def profiled(self, task: Task, candidate: Candidate) -> list[Profiled]:
        """What the device's counters say of a pass; nothing where ncu may not read them."""
        tool = find_ncu() if self._uncounted < _TRIES else None
        if tool is None:
            return []
        with self.exclusive():
            found = profiled(
                self.zygote, tool, task, candidate.source, devices=self._device_files(),
                readable=self._watched_folders(),
            )  # fmt: skip
        self._uncounted = self._uncounted + 1 if found is None else 0
        return found or []

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Whoever times must have the device alone, and memory may be short: the same lock."""
        with self._lock.exclusive():
            yield

    @contextmanager
    def staying(
        self, oracle: DeviceOracle, *, alone: bool = False, batch_bytes: int | None = None
    ) -> Iterator[bool]:
        """Have room for a whole judgement; says whether that is beside others.

        Rooms are held from the first check to the last timing: who waits for its turn keeps what
        it has. Alone means in all of them; so is a task that was short of memory beside others.
        Where nobody may be alone it means in as many as one may have. A timed batch takes
        ``batch_bytes`` on each side.
        """
        oracle.batch_bytes = batch_bytes or oracle.batch_bytes
        if not oracle.is_sized:
            with self._rooms.taken(TRYING), self._sharing(oracle):
                oracle.rooms()
        alone = alone or oracle.is_short
        if self.only_beside:
            if not oracle.rooms():
                raise UsageError("out of memory beside others: this task needs the device alone")
            if alone:
                oracle.widen_most()
        rooms = 0 if alone and not self.only_beside else oracle.rooms()
        with self._rooms.taken(kept_for(rooms or ROOMS)):
            self._beside = rooms > 0
            try:
                yield self._beside
            finally:
                self._beside = False
                # What is wrong with it, the next question shows: a verdict is not lost to this.
                with suppress(UsageError, EvaluationLost):
                    if oracle.is_open:
                        with self._lock.shared():
                            oracle.rest()

    @contextmanager
    def opening(self, oracle: DeviceOracle) -> Iterator[bool]:
        """Use the device without timing; says whether others may, too.

        They may time meanwhile: who shares the device steps aside for that.
        """
        if not self._beside:
            with self._lock.exclusive():
                yield False
            return
        with self._sharing(oracle):
            yield True

    @contextmanager
    def _sharing(self, oracle: DeviceOracle) -> Iterator[None]:
        with self._lock.shared() as oracle.way:
            try:
                yield
            finally:
                oracle.way = None

    @contextmanager
    def checking(self, oracle: DeviceOracle) -> Iterator[None]:
        """The same, and beside others nobody takes more of the memory than its rooms have."""
        with self.opening(oracle) as beside, oracle.within_rooms() if beside else nullcontext():
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Timing owns the device."""
        with self._lock.exclusive():
            yield

    def close(self) -> None:
        """End the zygotes and all their children."""
        self._rehearsals.close()
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
        if "_nvml" in self.__dict__:
            self._nvml.close()

    def _environment(self) -> dict[str, str]:
        """What all its processes see of the environment, beside the usual."""
        return _environment()

    def _device_files(self) -> list[Path]:
        """What the driver needs of ``/dev``."""
        return _device_files()

    def _folders(self) -> list[Path]:
        """What the driver and the compilers need besides the system's folders."""
        return list(_toolchain())

    def _watched_folders(self) -> list[Path]:
        """What a candidate needs that runs by itself, compilers included."""
        return self._folders()

    def _parent(self, name: str) -> Zygote:
        """Whom a side is forked from."""
        del name
        return self.zygote

    def _spawn(
        self, worker: str, *, without: dict[str, str] | None = None, parent: Zygote | None = None
    ) -> Child:
        readable = self._folders()
        if worker == "program" and "triton" in self._libraries and self._template.exists():
            readable.append(self._template)
        return (parent or self.zygote).spawn(
            entry=f"{_WORKER}.{worker}:serve",
            profile=self._profile if worker == "program" else Profile.BUILD,
            limits=_LIMITS,
            readable=readable,
            devices=self._device_files(),
            without=without,
        )

    def _asked_facts(self) -> dict[str, object]:
        with suppress(BackendUnavailable):  # the driver does not say: nothing is compiled ahead
            if self.gpu.capability is not None:
                major, minor = self.gpu.capability
                return {"name": self.gpu.name, "major": major, "minor": minor}
        return {}

    def _refuse_sharing(self) -> None:
        mode = self.gpu.compute_mode()
        if mode not in (None, ComputeMode.DEFAULT):
            raise UsageError(
                f"the GPU is in compute mode {mode}: the judge needs a process "
                "for each side; set it back with: nvidia-smi -c DEFAULT"
            )
        if mps_running():
            raise UsageError(
                "the CUDA multi-process service is running: kernels of other processes would run "
                "inside timed ones; stop it with: echo quit | nvidia-cuda-mps-control"
            )

    @cached_property
    def _template(self) -> Path:
        """A cache that holds Triton's own helpers; candidates read it and cannot write it."""
        versions = f"{triton_version()} {platform.python_version()} {self.gpu.name}"
        name = hashlib.sha256(versions.encode()).hexdigest()[:16]
        place = self._cache / "triton" / name
        if place.exists():
            return place
        child = self.zygote.spawn(
            entry=f"{_WORKER}.template:serve", profile=Profile.BUILD, limits=_LIMITS,
            readable=self._folders(), devices=self._device_files(),
        )  # fmt: skip
        try:
            files = child.call({"do": "compile"}, timeout_s=_COMPILE_S)["files"]
        finally:
            child.kill()
        assert isinstance(files, dict)
        fresh = place.with_name(f"{name}.{os.getpid()}")
        for relative, text in files.items():
            path = fresh / str(relative)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(str(text)))
        fresh.mkdir(parents=True, exist_ok=True)
        try:
            fresh.rename(place)
        except OSError:  # another judge was quicker
            shutil.rmtree(fresh, ignore_errors=True)
        return place

    @cached_property
    def _sandbox(self) -> str:
        child = self._spawn("program")
        try:
            compilers = "; may start compilers" if self._profile is Profile.BUILD else ""
            return f"{child.level.describe()}{compilers}"
        finally:
            child.kill()


def _environment() -> dict[str, str]:
    chosen = {"CUDA_MODULE_LOADING": "LAZY", "CUDA_CACHE_DISABLE": "1"}
    if driver := _driver_folder():
        chosen["TRITON_LIBCUDA_PATH"] = driver  # or it asks a program for it, in every process
    for name in ("LD_LIBRARY_PATH", "CC", "CUDA_VISIBLE_DEVICES", "CUDA_HOME"):
        if value := os.environ.get(name):
            chosen[name] = value
    return chosen


def _driver_folder() -> str | None:
    """Where the driver's library was loaded from."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "/libcuda.so" in path:
            return str(Path(path).parent)
    return None


def _device_files() -> list[Path]:
    found = [Path(path) for path in sorted(glob.glob("/dev/nvidia*"))]
    found += [Path(path) for path in sorted(glob.glob("/dev/nvidia-caps/*"))]
    return [path for path in found if not path.is_dir()]


def _toolchain() -> Iterator[Path]:
    """Folders outside of the system's that the driver and the compilers live in."""
    places = [Path(each) for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each]
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler:
        places.append(Path(compiler).resolve().parent.parent)
    places += [Path(each).parent for each in os.environ.get("PATH", "").split(":")
               if each.endswith("/bin") and (Path(each) / "gcc").exists()]  # fmt: skip
    seen = set()
    for place in places:
        real = place.resolve()
        inside = any(str(real).startswith(root) for root in ("/usr/lib", "/usr/bin", "/lib"))
        if real in (Path("/"), Path("/usr")) or inside or real in seen or not real.exists():
            continue
        seen.add(real)
        yield place if place.is_absolute() else real


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        raise BackendUnavailable(
            f"a backend on NVIDIA GPUs needs {package}; try: pip install {package}"
        ) from error
