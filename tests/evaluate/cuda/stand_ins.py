"""A device that is not there: lanes and a reference that take note of who could use it when."""

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace

from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.floor import Speeds
from kernelsmith.evaluate.cuda.lane import Replay
from kernelsmith.evaluate.cuda.nvml import Snapshot
from kernelsmith.evaluate.cuda.oracle import ArenaView, DeviceOracle, Nature
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.rooms import Rooms
from kernelsmith.evaluate.values import InputSet, Launches, Setup, State

TASK = Task(name="nothing", source="", workloads=(Workload(name="default"),))
_SNAPSHOT = Snapshot(
    sm_mhz=1755, memory_mhz=3201, celsius=41, watts=300.0, reasons=frozenset(),
    pids=frozenset({1, 2}),
)  # fmt: skip


class Watch:
    """Notes what happens on the device, and whether others could have used it just then."""

    def __init__(self, lock: DeviceLock) -> None:
        self._lock = lock
        self.seen: list[tuple[str, str]] = []

    def note(self, what: str) -> None:
        fd = os.open(self._lock.path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            how = "beside"
        except BlockingIOError:
            how = "alone"
        finally:
            os.close(fd)
        self.seen.append((what, how))

    def where(self, what: str) -> set[str]:
        """How all of these were."""
        return {how for name, how in self.seen if name == what}

    def first(self, what: str) -> int:
        return [name for name, _ in self.seen].index(what)


class Reference(DeviceOracle):
    """Right about everything."""

    is_open = True
    has_statistic = False

    def __init__(self, *, rooms: int = 1) -> None:
        self._task, self._rooms, self._program, self._total = TASK, rooms, 0.01, 140 << 30
        self.for_programs, self._broken = None, False
        self.avoided, self.batches, self.alone, self._needs = set(), {}, {}, {}
        self.natures = {
            "default": Nature(is_random=False, is_stateful=False, mutates=False, set_bytes=4096)
        }

    def _ask(self, message, fds=()):
        return {}

    def workload(self, workload, seed):
        return Setup(
            init=[], keywords=False, leaves=(), state=State(keys=(), leaves=()), seed=seed,
            dtype=None, training=False,
        )  # fmt: skip

    def inputs(self, seeds, variant="plain"):
        return [InputSet(id=seed, tree=[], keywords=False, leaves=(), paths=()) for seed in seeds]

    def arrange(self, sets):
        return ArenaView(handle="", layout=[[] for _ in sets], sets=tuple(sets))

    def renew(self, view, seeds):
        return list(view.sets)

    def idle_us(self):
        return 20.0

    def needs(self, workload, draw):
        return 0, None

    def knows_needs(self, workload):
        return True


class Program:
    """Takes so many microseconds a launch."""

    persisting, output, source = 0, "", "a source"

    def __init__(self, name: str, us: float, watch: Watch, *, late_us: float = 0.0) -> None:
        """``late_us`` is how much later than the other side's its answers come."""
        self.name, self._us, self._watch, self._late_us = name, us, watch, late_us
        self.pid = {"baseline": 1, "candidate": 2}[name]
        self.nodes, self._captured = 0, 0
        watch.note(f"{name} opens")

    def arrange(self, sets):
        pass

    attach = arrange

    def detach(self):
        pass

    def run(self, slots):
        self._watch.note(f"{self.name} runs")
        return self._launches(len(slots))

    def capture(self, slots):
        self._watch.note(f"{self.name} is captured")
        self.nodes = self._captured = len(slots)
        return self._launches(len(slots))

    def replay(self):
        self._watch.note(f"{self.name} is timed")
        took = self._us * self._captured
        return Replay(wall_us=took + 100.0 + self._late_us, event_us=took)

    def replay_from(self, first, launches):
        pass

    def release(self, launches):
        pass

    poison = release

    def helpers(self):
        return []

    def kernels(self, slots, launches):
        self._watch.note(f"{self.name} is looked at")
        return []

    def close(self):
        self._watch.note(f"{self.name} ends")

    def _launches(self, count):
        return Launches(
            elapsed_us=self._us * count, waited_us=0.0, event_us=self._us * count, tree=[],
            specs=(), addresses=((),) * count,
        )  # fmt: skip


def a_device(folder: Path) -> tuple[CudaBackend, Watch]:
    """A backend whose locks are real and whose device is not."""
    backend = CudaBackend()
    lock = DeviceLock("a device", folder)
    backend.__dict__["_lock"] = lock
    backend.__dict__["_rooms"] = Rooms("a device", folder)
    backend.__dict__["gpu"] = SimpleNamespace(
        pids=lambda: _SNAPSHOT.pids, snapshot=lambda: _SNAPSHOT
    )
    backend._speeds = Speeds(
        dram_bytes_s=4e12, l2_bytes_s=8e12, l2_bytes=1 << 25, processors=132, flops={}
    )
    return backend, Watch(lock)
