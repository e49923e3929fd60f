"""Where the candidate's time runs, collected over watched batches."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelsmith.domain.evaluation import Coverage
from kernelsmith.domain.task import Library
from kernelsmith.evaluate.backend import Lane
from kernelsmith.evaluate.guards.coverage import coverage, library_us, read_maps
from kernelsmith.evaluate.guards.policy import DECISIVE, undecided
from kernelsmith.evaluate.guards.ptrace import cpu_s
from kernelsmith.evaluate.guards.sampler import Sampler, open_sampler
from kernelsmith.evaluate.values import Launches

_BUSY = 0.2
"""A main thread that computes for more of the time than this is judged by its own doing, too."""


@dataclass(slots=True)
class Count:
    """Samples in own code and in own or library code together."""

    own: float = 0.0
    total: int = 0

    def add(self, found: Coverage | None) -> None:
        """Add one batch's samples."""
        if found is not None:
            self.own += found.own * found.samples
            self.total += found.samples

    @property
    def coverage(self) -> Coverage | None:
        """Shares of all samples so far."""
        if not self.total:
            return None
        own = min(self.own / self.total, 1.0)
        return Coverage(own=own, library=1 - own, samples=self.total)


@dataclass(slots=True)
class Watched:
    """What the sampler saw of the candidate, over all workloads and pairs so far."""

    everyone: Count = field(default_factory=Count)
    leader: Count = field(default_factory=Count)
    """The main thread alone: own code that merely spins beside it is no work."""
    launches: int = 0
    batches: int = 0
    elapsed_us: float = 0.0
    sampled_s: float = 0.0
    """CPU time that the addresses stand for."""
    addresses: int = 0
    built: bool = False
    """Whether the judge built anything for the candidate."""
    possible: bool = True
    opened: Callable[[int], Sampler | None] = open_sampler

    @property
    def frequency(self) -> float:
        """Samples per second of CPU time."""
        return self.addresses / self.sampled_s if self.sampled_s else 0.0

    @property
    def coverage(self) -> Coverage | None:
        """Shares of all threads, or of a busy main thread where that shows less own code."""
        everyone, leader = self.everyone.coverage, self.leader.coverage
        if everyone is None or leader is None:
            return everyone
        is_busy = leader.samples >= _BUSY * self.frequency * self.elapsed_us / 1e6
        return leader if is_busy and leader.own < everyone.own else everyone

    @property
    def library_us(self) -> float | None:
        """Library time per launch."""
        found = self.coverage
        if found is None or not self.launches or not self.frequency:
            return None
        return library_us(found, frequency=self.frequency, launches=self.launches)

    def missing_batches(self, library: Library) -> int:
        """How many more batches would settle whether the task's library policy is broken."""
        found = self.coverage
        if not self.possible or not self.built or library is Library.ANY:
            return 0  # who built nothing needs no samples to be convicted
        if found is None:  # not one sample in so many
            return DECISIVE * self.batches
        if not undecided(found, library, library_us=self.library_us):
            return 0
        wanted = DECISIVE if found.samples < DECISIVE else 2 * found.samples
        return math.ceil((wanted - found.samples) * self.batches / found.samples)

    def watch(self, lane: Lane, slots: list[int]) -> Launches | None:
        """Run one batch with a sampler on it; the program cannot see that it is there."""
        sampler = self.opened(lane.pid) if lane.pid is not None else None
        if sampler is None or lane.pid is None:
            self.possible = False
            return None
        with sampler:
            before_s = cpu_s(lane.pid)
            sampler.start()
            launches = lane.run(slots)
            addresses = sampler.stop()
            leader = sampler.leader
        if sampler.frequency is not None:
            self.sampled_s += len(addresses) / sampler.frequency
        else:  # as often as the machine let it
            self.sampled_s += cpu_s(lane.pid) - before_s
        self.addresses += len(addresses)
        maps, own = read_maps(lane.pid), lane.own_code
        self.built = self.built or bool(own)
        self.everyone.add(coverage(addresses, maps, own, enough=1))
        self.leader.add(coverage(leader, maps, own, enough=1))
        self.launches += len(slots)
        self.batches += 1
        self.elapsed_us += launches.elapsed_us
        return launches
