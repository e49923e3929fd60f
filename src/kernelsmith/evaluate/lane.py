"""One side of a comparison: a program in a sandboxed process, driven and read by the judge."""

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.arena import Arena, poison
from kernelsmith.evaluate.builder import Artifact, BuildFailed
from kernelsmith.evaluate.failure import KilledFromOutside, ProgramFailed
from kernelsmith.evaluate.oracle import spec_of
from kernelsmith.evaluate.sandbox.errors import (
    BadAddress,
    ChildBroken,
    ChildDied,
    ChildTimedOut,
)
from kernelsmith.evaluate.sandbox.process import Child
from kernelsmith.evaluate.tensors import CARRIERS, Spec, Tensor, from_bytes
from kernelsmith.evaluate.values import Found, InputSet, Launches, Setup, State
from kernelsmith.kernels import BuildError, BuildRequest

_MAX_OUTPUT_BYTES = 1 << 34
_TICKS = os.sysconf("SC_CLK_TCK")
NONSENSE = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading a hostile reply may raise."""


class Builds(Protocol):
    """Whoever compiles what a program asks for."""

    def build(self, request: BuildRequest) -> Artifact:
        """Compile, or raise ``BuildFailed``."""
        ...


class Lane:
    """A program that turns inputs into outputs. Between calls its process is frozen."""

    def __init__(
        self, child: Child, builder: Builds, *, threads: int, timeout_s: float, name: str
    ) -> None:
        self._child, self._builder = child, builder
        self._threads, self._timeout_s, self.name = threads, timeout_s, name
        self._artifacts: list[Artifact] = []
        self._state: dict[str, tuple[Spec, int]] = {}
        self._arena: Arena | None = None
        self._places: list[tuple[int, int, int]] = []
        self._sets: list[InputSet] = []
        self.prepares = False
        self.build_s = 0.0
        self.spared: frozenset[int] = frozenset()

    @property
    def room(self) -> int | None:
        """Batches of checks are small; the host has room for them."""
        return None

    @property
    def pid(self) -> int:
        """The process, for whoever watches it from outside."""
        return self._child.pid

    @property
    def is_open(self) -> bool:
        """Whether its process is still there."""
        return self._child.alive

    @property
    def output(self) -> str:
        """Tail of what the program printed."""
        return self._child.output

    @property
    def own_code(self) -> frozenset[tuple[int, int]]:
        """Device and inode of every shared object that the judge built for this program."""
        return frozenset(artifact.identity for artifact in self._artifacts)

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Run the source and construct what it defines, building what it asks for."""
        self._load(source, entry, setup, function=function, more={})

    def _load(
        self, source: str, entry: str, setup: Setup, *, function: bool, more: dict[str, object]
    ) -> None:
        with Arena.of_leaves(setup.leaves) as arena:
            reply = self._ask(
                {
                    "do": "load", "source": source, "entry": entry, "function": function,
                    "threads": self._threads, "seed": setup.seed, "init": setup.init,
                    "keywords": setup.keywords, "leaves": arena.layout[0],
                    "dtype": setup.dtype, "training": setup.training, **more,
                },
                fds=[arena.fd],
            )  # fmt: skip
        if "missing" in reply:
            raise ProgramFailed(Verdict.BUILD_FAILED, f"the source defines no {entry}")
        self._note(reply)
        self.prepares = bool(reply.get("prepare"))

    def state_mismatch(self, state: State) -> str | None:
        """Say which state-dict keys do not fit the reference's, or nothing."""
        wanted = dict(state.shapes())
        found = {key: (spec.dtype, spec.shape) for key, (spec, _) in self._state.items()}
        missing = sorted(set(wanted) - set(found))
        extra = sorted(set(found) - set(wanted))
        other = sorted(k for k in set(wanted) & set(found) if wanted[k] != found[k])
        parts = []
        if missing:
            parts.append(f"lacks {', '.join(missing)}")
        if extra:
            parts.append(f"adds {', '.join(extra)} (further buffers must be non-persistent)")
        for key in other:
            parts.append(f"has {key} as {found[key]} instead of {wanted[key]}")
        return "; ".join(parts) or None

    def weights(self, state: State, *, first: bool, prepare: bool = False) -> None:
        """Give the program the reference's weights, in place; later ones without its knowledge."""
        if not state.keys:
            return
        if not first and not prepare:
            self._overwrite(state)
            return
        with Arena.of_leaves(state.leaves) as arena:
            message = {
                "do": "weights", "keys": list(state.keys), "leaves": arena.layout[0],
                "first": first, "prepare": prepare,
            }  # fmt: skip
            self._note_state(self._ask(message, fds=[arena.fd]).get("state"))

    def arrange(self, sets: Sequence[InputSet]) -> None:
        """Make one slot per set, and fill it."""
        self._close_arena()
        self._sets = []
        self._arena = Arena([[leaf.spec for leaf in each.leaves] for each in sets])
        slots = [
            {"leaves": leaves, "tree": each.tree, "keywords": each.keywords}
            for leaves, each in zip(self._arena.layout, sets, strict=True)
        ]
        self.refill(sets)
        self._ask({"do": "arrange", "slots": slots}, fds=[self._arena.fd])

    def refill(self, sets: Sequence[InputSet], slots: Sequence[int] | None = None) -> None:
        """Put new contents behind the same addresses, while the program cannot look."""
        assert self._arena is not None
        self._sets = self._sets or list(sets)
        for slot in range(len(sets)) if slots is None else slots:
            self._arena.write(slot, sets[slot])
            self._sets[slot] = sets[slot]

    def run(self, slots: Sequence[int]) -> Launches:
        """Launch once per slot. The clock runs from thaw to the reply; then all stands still."""
        before = self._usage()
        reply, elapsed = self._exchange({"do": "run", "slots": list(slots)}, ())
        after = self._usage()
        reply = self._accept(reply)
        try:
            launches = Launches(
                elapsed_us=elapsed,
                waited_us=before.disturbed_us(after, cores=self._threads, elapsed_us=elapsed),
                faults=after.faults - before.faults,
                tree=reply["tree"],
                specs=tuple(read_spec(each) for each in reply["leaves"]),
                addresses=tuple(tuple(int(a) for a in each) for each in reply["addresses"]),
            )
        except NONSENSE as error:
            raise ProgramFailed(
                Verdict.CRASHED, f"its process answered nonsense: {error}"
            ) from error
        if len(launches.addresses) != len(slots):
            raise ProgramFailed(
                Verdict.CRASHED,
                f"its process answered nonsense: {len(launches.addresses)} outputs of "
                f"{len(slots)} launches",
            )
        return launches

    def outputs(self, launches: Launches, index: int) -> Sequence[Found | str]:
        """Read one launch's outputs out of the frozen process; a text says why one is none."""
        found: list[Found | str] = []
        addresses = launches.addresses[index] if index < len(launches.addresses) else ()
        for position, spec in enumerate(launches.specs):
            if isinstance(spec, str):
                found.append(spec)
            elif position >= len(addresses):
                found.append("missing in this launch")
            else:
                found.append(self._found(addresses[position], spec))
        return found

    def buffer(self, key: str, like: Tensor | Spec) -> Found | str:
        """Read one of the program's buffers as it is now, if it has the form of ``like``."""
        if key not in self._state:
            return "missing"
        spec, address = self._state[key]
        if (spec.dtype, spec.shape) != (like.dtype, like.shape) or not spec.is_dense:
            return f"of another form: {spec}"
        return self._found(address, spec)

    def release(self, launches: Launches) -> None:
        """Write over the outputs, then let the program forget them."""
        kept = self._kept_ranges()
        for addresses in launches.addresses:
            both = zip(launches.specs, addresses, strict=False)
            for position, (spec, address) in enumerate(both):
                if isinstance(spec, str) or not 0 < spec.span_bytes <= _MAX_OUTPUT_BYTES:
                    continue
                if position in self.spared:
                    continue
                if any(start <= address < end for start, end in kept):
                    continue
                try:
                    count = spec.span_bytes // CARRIERS[spec.dtype].itemsize
                    with self._blamed("releasing its memory"):
                        self._child.write(address, poison(spec.dtype, count))
                except BadAddress:
                    continue  # read-only or gone; there is nothing left to mislead anyone
        self._note_state(self._ask({"do": "release"}).get("state"))

    def input_now(self, slot: int, leaf: int) -> Found:
        """What an input holds after the launches, read from the judge's own mapping."""
        assert self._arena is not None
        return from_bytes(self._arena.read(slot, leaf), self._sets[slot].leaves[leaf].spec)

    def changed_inputs(self, slot: int) -> list[int]:
        """Leaves of a slot that no longer hold what the judge wrote."""
        assert self._arena is not None
        return self._arena.changed(slot, self._sets[slot])

    def guards_intact(self) -> bool:
        """Whether nothing was written between the inputs."""
        assert self._arena is not None
        return self._arena.guards_intact()

    def input_at(self, address: int) -> tuple[int, int] | None:
        """Slot and leaf of the input that an address lies in, if it lies in one."""
        if self._arena is None:
            return None
        for start, end, offset in self._arena_places():
            if start <= address < end:
                return self._arena.locate(address - start + offset)
        return None

    def settle(self) -> None:
        """Nothing is tuned while it runs."""

    def modules(self) -> list[str]:
        """Private torch modules that the program has loaded; its word can only convict it."""
        said = self._ask({"do": "modules"}).get("modules")
        if not isinstance(said, list):
            raise ProgramFailed(
                Verdict.CRASHED, f"its process answered nonsense: {repr(said)[:200]}"
            )
        return [str(name) for name in said]

    def close(self) -> None:
        """End the process and give its memory back."""
        self._child.kill()
        self._close_arena()
        for artifact in self._artifacts:
            os.close(artifact.fd)
        self._artifacts.clear()

    def _usage(self) -> "_Usage":
        with self._blamed("looking at its threads"):
            try:
                return _Usage.of(self._child.pid)
            except (FileNotFoundError, ProcessLookupError):
                self._child.thaw()  # says how it died
                raise EvaluationLost(f"the {self.name}'s process is gone") from None

    def _ask(self, message: dict[str, object], fds: Sequence[int] = ()) -> dict[str, Any]:
        return self._accept(self._exchange(message, fds)[0])

    def _exchange(
        self, message: dict[str, object], fds: Sequence[int]
    ) -> tuple[dict[str, Any], float]:
        """Thaw, ask, wait, freeze; returns the reply and the microseconds until it came."""
        with self._blamed(str(message["do"])):
            start = time.perf_counter_ns()
            self._child.thaw()
            self._child.post(message, fds=fds)
            reply = self._child.receive(self._timeout_s)
            elapsed = (time.perf_counter_ns() - start) / 1000
            while reply.get("need") == "build":
                self._build(reply.get("request"))
                reply = self._child.receive(self._timeout_s)
                elapsed = (time.perf_counter_ns() - start) / 1000
            self._child.freeze()
        return reply, elapsed

    @contextmanager
    def _blamed(self, doing: str) -> Iterator[None]:
        """Turn what the process did while ``doing`` into a verdict."""
        try:
            yield
        except ChildTimedOut as error:
            what = f"{doing} took more than {self._timeout_s:.0f} s"
            raise ProgramFailed(Verdict.TIMED_OUT, what) from error
        except ChildDied as error:
            if error.signal_name == "SIGKILL" and not error.by_judge:
                raise KilledFromOutside(f"the {self.name}'s process was killed: {error}") from error
            tail = f"\n{error.output.strip()[-1500:]}" if error.output.strip() else ""
            raise ProgramFailed(Verdict.CRASHED, f"{error}{tail}") from error
        except ChildBroken as error:
            raise ProgramFailed(
                Verdict.CRASHED, f"its process answered nonsense: {error}"
            ) from error

    def _build(self, request: object) -> None:
        begun = time.monotonic()
        try:
            parsed = BuildRequest.from_json(request if isinstance(request, dict) else {})
            artifact = self._builder.build(parsed)
        except (BuildFailed, BuildError) as error:
            # A build that failed is the verdict, whatever the program would make of it.
            raise ProgramFailed(Verdict.BUILD_FAILED, str(error)) from error
        finally:
            self.build_s += time.monotonic() - begun
        self._artifacts.append(artifact)
        self._child.post({"built": True}, fds=[artifact.fd])

    def _accept(self, reply: dict[str, Any]) -> dict[str, Any]:
        if "error" in reply:
            raise ProgramFailed(Verdict.CRASHED, str(reply["error"]))
        if "refused_build" in reply:
            raise ProgramFailed(Verdict.BUILD_FAILED, str(reply["refused_build"]))
        return reply

    def _note(self, reply: dict[str, Any]) -> None:
        """Take over what a reply says about the program's memory."""
        self._note_state(reply.get("state"))

    def _found(self, address: int, spec: Spec) -> Found | str:
        """What lies at an address that the process named, or why that is nothing."""
        if spec.span_bytes > _MAX_OUTPUT_BYTES or min(spec.strides, default=0) < 0:
            return f"not a plausible tensor: {spec}"
        if spec.count == 0:
            return from_bytes(bytearray(), spec)
        try:
            with self._blamed("reading its memory"):
                return from_bytes(self._child.read(address, spec.span_bytes), spec)
        except BadAddress:
            return "at an address that its process cannot read"

    def _note_state(self, described: Any) -> None:
        try:
            self._state = {
                str(key): (spec_of(leaf), int(leaf["address"]))
                for key, leaf in described
                if leaf.get("dtype") in CARRIERS
            }
        except NONSENSE as error:
            raise ProgramFailed(
                Verdict.CRASHED, f"its process answered nonsense: {error}"
            ) from error

    def _overwrite(self, state: State) -> None:
        """Store weights while the process is frozen: no hook runs, and no version counter moves."""
        for key, leaf in zip(state.keys, state.leaves, strict=True):
            if key not in self._state or leaf.spec.span_bytes == 0:
                continue
            spec, address = self._state[key]
            same = (spec.dtype, spec.shape) == (leaf.spec.dtype, leaf.spec.shape)
            if not same or spec.span_bytes > _MAX_OUTPUT_BYTES or min(spec.strides, default=0) < 0:
                raise ProgramFailed(Verdict.WRONG, f"{key} has become something else: {spec}")
            try:
                with self._blamed("writing its weights"):
                    raw = self._child.read(address, spec.span_bytes)  # gaps stay as they are
                    np.copyto(from_bytes(raw, spec).values, leaf.tensor.values)
                    self._child.write(address, raw)
            except BadAddress as error:
                raise ProgramFailed(Verdict.WRONG, f"{key} lies where nobody can write") from error

    def _kept_ranges(self) -> list[tuple[int, int]]:
        """Memory that must not be written over: inputs and weights."""
        ranges = [(address, address + spec.span_bytes) for spec, address in self._state.values()]
        if self._arena is not None:
            ranges += [(start, end) for start, end, _ in self._arena_places()]
        return ranges

    def _arena_places(self) -> list[tuple[int, int, int]]:
        assert self._arena is not None
        if not self._places:
            self._places = _mapped(self._child.pid, self._arena.fd)
        return self._places

    def _close_arena(self) -> None:
        self._places = []
        if self._arena is not None:
            self._arena.close()
            self._arena = None


def read_spec(described: dict[str, Any]) -> Spec | str:
    """What a reply says of one tensor; a text says why it is no plain one."""
    if "layout" in described:
        return f"a {described['layout']} tensor"
    if described.get("dtype") not in CARRIERS:
        return f"of dtype {described.get('dtype')}, which cannot be judged"
    return spec_of(described)


@dataclass(frozen=True, slots=True)
class _Usage:
    """What a process's threads have had of the cores so far, in nanoseconds."""

    ran: dict[str, int]
    waited: dict[str, int]
    stolen: int
    faults: int
    """Not nanoseconds but minor page faults."""

    @classmethod
    def of(cls, pid: int) -> Self:
        """Read it for all threads."""
        ran, waited = {}, {}
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                fields = (task / "schedstat").read_text().split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            ran[task.name], waited[task.name] = int(fields[0]), int(fields[1])
        stolen = _stolen(os.sched_getaffinity(0)) * 1_000_000_000 // _TICKS
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return cls(ran, waited, stolen, faults=int(fields[7]))

    def disturbed_us(self, later: "_Usage", *, cores: int, elapsed_us: float) -> float:
        """How long others kept the cores from it: its own surplus of threads does not count."""
        active = [
            name
            for name, ran in later.ran.items()
            if ran - self.ran.get(name, 0) > 10 * elapsed_us  # one per cent
        ]
        waited = sum(later.waited[name] - self.waited.get(name, 0) for name in active)
        own_doing = len(active) > cores
        return ((0 if own_doing else waited) + later.stolen - self.stolen) / 1000


def _stolen(cores: Collection[int]) -> int:
    """Ticks that a hypervisor kept these cores to itself; what others miss is no matter here."""
    wanted, found = {f"cpu{core}" for core in cores}, 0
    with open("/proc/stat") as lines:
        for line in lines:
            name, *fields = line.split()
            if not name.startswith("cpu"):
                break
            found += int(fields[7]) if name in wanted else 0
    return found


def _mapped(pid: int, fd: int) -> list[tuple[int, int, int]]:
    """Where a process has a memory file mapped: start, end, offset in the file."""
    inode = os.fstat(fd).st_ino
    found = []
    with open(f"/proc/{pid}/maps") as lines:
        for line in lines:
            fields = line.split(maxsplit=5)
            if len(fields) > 5 and int(fields[4]) == inode and "memfd" in fields[5]:
                start, end = (int(part, 16) for part in fields[0].split("-"))
                found.append((start, end, int(fields[2], 16)))
    return found
