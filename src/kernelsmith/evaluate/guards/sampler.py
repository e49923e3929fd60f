"""Samplers: instruction pointers of a running process, collected by the judge from outside.

Three ways, the best one first:

- perf events on every CPU, filtered by process (root or ``CAP_PERFMON``): sees every thread,
  however short it lives (some 12 us per sample in a virtual machine: 6 % at 5 kHz);
- perf events on the process's threads (``perf_event_paranoid`` up to 2): a thread that lives less
  than one period leaves no sample, so work cut into brief threads can hide;
- ptrace (a parent may trace its child): stops threads for some 50 microseconds per sample, so a
  batch that is sampled like this must not be timed.

Open one while the process is frozen: threads that start in between are missed by the second way.
"""

import contextlib
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, Protocol, Self

from kernelsmith.evaluate.guards import perf, ptrace

FREQUENCY = 5000
"""Samples per second of CPU time."""
_LONG_S = 0.003
"""Threads that have a CPU are stopped, read and let go in far less."""


class Sampler(Protocol):
    """Collects instruction pointers between ``start`` and ``stop``, as often as wanted.

    It says nothing about what the addresses mean; ``coverage`` does.
    """

    method: Literal["perf", "ptrace"]
    frequency: int | None
    """Samples per second of CPU time, where that is exact."""

    @property
    def leader(self) -> Sequence[int]:
        """Of the last addresses, those of the main thread: whoever called the candidate."""
        ...

    def start(self) -> None:
        """Begin; the process may be frozen or running."""
        ...

    def stop(self) -> Sequence[int]:
        """Return every address since ``start``; ``perf.UNKNOWN`` where memory was exchanged."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class PerfSampler:
    """Samples by perf events: of all CPUs where allowed, else of the process's threads."""

    method: Literal["perf", "ptrace"] = "perf"

    def __init__(self, pid: int, *, frequency: int = FREQUENCY, wide: bool = True) -> None:
        self.frequency: int | None = frequency
        self.leader: Sequence[int] = ()
        self._pid = pid
        self._rings: list[perf.Ring] = []
        threads = [perf.ANY_PROCESS] if wide else _threads(pid)
        try:
            for cpu in perf.online_cpus():
                self._rings.append(
                    perf.Ring(perf.open_event(threads[0], cpu=cpu, frequency=frequency))
                )
                for thread in threads[1:]:
                    event = perf.open_event(thread, cpu=cpu, frequency=frequency)
                    self._rings[-1].join(event)
        except OSError:
            self.close()
            raise

    def start(self) -> None:
        """Begin; costs one system call per event."""
        for ring in self._rings:
            ring.enable()

    def stop(self) -> Sequence[int]:
        """End and return the addresses."""
        for ring in self._rings:
            ring.disable()
        samples: list[tuple[int, int]] = []
        mapped: list[tuple[int, int]] = []
        for ring in self._rings:
            some, areas = ring.read(self._pid)
            samples += some
            mapped += areas
        addresses = _without([address for _, address in samples], mapped)
        self.leader = [a for (t, _), a in zip(samples, addresses, strict=True) if t == self._pid]
        return addresses

    def close(self) -> None:
        """Give the buffers back."""
        for ring in self._rings:
            ring.close()
        self._rings.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PtraceSampler:
    """Samples by stopping running threads one after the other, from a thread of the judge."""

    method: Literal["perf", "ptrace"] = "ptrace"
    frequency: int | None = None

    def __init__(self, pid: int, *, frequency: int = 1000) -> None:
        ptrace.address_of(pid)  # refused here, or never
        self._pid = pid
        self._pause = 1 / frequency
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._addresses: list[int] = []
        self._leader: list[int] = []

    @property
    def leader(self) -> Sequence[int]:
        """What the main thread was doing."""
        return self._leader

    def start(self) -> None:
        """Begin in the background."""
        self._done.clear()
        self._addresses, self._leader = [], []
        # The kernel lets only the thread that seized a tracee talk to it, so one thread does all.
        self._thread = threading.Thread(target=self._sample, name="ptrace-sampler", daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        seen_s, crowded = 0.0, False
        while not self._done.wait(self._pause):
            # A thread that waits for a busy CPU is stopped as soon as it gets one, and waits again
            # from the start: asked once more before it ran, it would never come to work at all.
            if crowded and ptrace.cpu_s(self._pid) < seen_s + self._pause / 4:
                continue
            begun_s = time.monotonic()
            for tid in ptrace.running_threads(self._pid):
                with contextlib.suppress(OSError):  # the thread ended meanwhile
                    address = ptrace.address_of(tid)
                    self._addresses.append(address)
                    if tid == self._pid:
                        self._leader.append(address)
            crowded = crowded or time.monotonic() - begun_s > _LONG_S
            seen_s = ptrace.cpu_s(self._pid)

    def stop(self) -> Sequence[int]:
        """End and return the addresses; every thread has been let go by then."""
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
        return self._addresses

    def close(self) -> None:
        """Stop, if that was forgotten."""
        self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_sampler(pid: int, *, frequency: int = FREQUENCY) -> Sampler | None:
    """Return the best sampler that this machine allows for a process, or none."""
    for wide in (True, False):
        with contextlib.suppress(OSError):
            return PerfSampler(pid, frequency=frequency, wide=wide)
    with contextlib.suppress(OSError):
        return PtraceSampler(pid)
    return None


def _threads(pid: int) -> list[int]:
    return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]


def _without(addresses: list[int], areas: list[tuple[int, int]]) -> list[int]:
    """Replace addresses in memory that became executable meanwhile: nobody knows what was there."""
    if not areas:
        return addresses
    merged: list[tuple[int, int]] = []
    for start, end in sorted(areas):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    starts = [start for start, _ in merged]

    def known(address: int) -> bool:
        at = bisect_right(starts, address) - 1
        return at < 0 or address >= merged[at][1]

    return [address if known(address) else perf.UNKNOWN for address in addresses]
