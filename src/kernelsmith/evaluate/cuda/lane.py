"""One side of a comparison on a device: frozen between calls, its memory read from outside."""

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelsmith.domain.evaluation import Kernel, Verdict
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.builder import Artifact, BuildFailed
from kernelsmith.evaluate.cuda.answer import Placed
from kernelsmith.evaluate.cuda.oracle import ArenaView, DeviceOracle
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.lane import NONSENSE, Builds, Lane, read_spec
from kernelsmith.evaluate.sandbox.channel import FILES_BYTES
from kernelsmith.evaluate.sandbox.process import Child
from kernelsmith.evaluate.tensors import Spec
from kernelsmith.evaluate.values import InputSet, Launches, Setup, State
from kernelsmith.kernels import BuildRequest

_MOST_KERNELS = 64
_MOST_SETTLED = 8
_keeping = threading.Lock()
"""Rehearsals leave something while others are judged."""


class NoBuilder:
    """Stands where a C++ compiler would: kernels of this backend are built by Triton."""

    def build(self, request: BuildRequest) -> Artifact:
        """Say so."""
        raise BuildFailed(f"this backend builds no C++ ({request.name}); write a Triton kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One timed batch: what the judge's clock said, and the process's own events."""

    wall_us: float
    event_us: float


@dataclass(frozen=True, slots=True)
class Settled:
    """What a source's first process left to its next ones."""

    choices: list[object] = field(default_factory=list)
    files: dict[str, object] = field(default_factory=dict)
    seeded: bool = False
    """Whether it comes from elsewhere, and no process has said yet what it made of it."""


def remember(
    settled: OrderedDict[str, Settled], source: str, left: Settled, *, only_new: bool = False
) -> None:
    """Keep what a source's processes begin with; where there are many, the longest unused goes.

    Files that no message can carry are left out: every process compiles them for itself then.

    Args:
        settled: What is kept.
        source: Whose.
        left: What to keep.
        only_new: Leave alone what is there already, and keep all of it or nothing.
    """
    if 3 * sum(len(str(text)) for text in left.files.values()) > 4 * FILES_BYTES:
        if only_new:
            return
        left = replace(left, files={}, seeded=False)
    with _keeping:
        if only_new and source in settled:
            return
        settled.pop(source, None)
        while len(settled) >= _MOST_SETTLED:
            settled.popitem(last=False)
        settled[source] = left


def recall(settled: OrderedDict[str, Settled], source: str) -> Settled:
    """What a source's process begins with."""
    with _keeping:
        if source not in settled:
            return Settled()
        settled.move_to_end(source)
        return settled[source]


class DeviceLane(Lane):
    """A program on the device."""

    def __init__(
        self, child: Child, oracle: DeviceOracle, *, threads: int, timeout_s: float, name: str,
        template: Path | None, settled: OrderedDict[str, Settled], builder: Builds | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            child, builder or NoBuilder(), threads=threads, timeout_s=timeout_s, name=name
        )
        self._oracle, self._template, self._settled = oracle, template, settled
        self.source = ""
        self._segments: dict[int, tuple[int, str]] = {}
        self._view: ArenaView | None = None
        self._base = (0, 0)
        self.nodes = 0
        """Kernels, copies and fills in the graph captured last."""
        self.persisting = 0
        """Bytes of the second-level cache that it keeps to itself."""

    @property
    def room(self) -> int | None:
        """Bytes of input that are worth arranging at once."""
        return self._oracle.room

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Run the source and construct what it defines, from what its earlier processes left."""
        self.source = source
        known = recall(self._settled, source)
        self._load(
            source, entry, setup, function=function,
            more={
                "template": str(self._template) if self._template else None,
                "choices": known.choices, "cache": known.files,
                "memory": self._oracle.for_programs,
            },
        )  # fmt: skip

    def weights(self, state: State, *, first: bool, prepare: bool = False) -> None:
        """Give the program the reference's weights; later ones without its knowledge."""
        if not state.keys:
            return
        if not first and not prepare:
            places = {key: self._state_place(key) for key in state.keys if key in self._state}
            self._oracle.overwrite(places)
            return
        lent = self._oracle.lend()
        try:
            message = {
                "do": "weights", "keys": list(state.keys), "prepare": prepare,
                "handle": lent["handle"], "leaves": lent["leaves"],
            }  # fmt: skip
            self._note(self._ask(message))
        finally:
            self._oracle.take_back()

    def arrange(self, sets: Sequence[InputSet]) -> None:
        """Make one slot per set, and fill it."""
        self.detach()
        self.attach(self._oracle.arrange(sets))

    def attach(self, view: ArenaView) -> None:
        """Read inputs from an arena, which another side may read from as well."""
        slots = [
            {"leaves": leaves, "tree": each.tree, "keywords": each.keywords}
            for leaves, each in zip(view.layout, view.sets, strict=True)
        ]
        share = self._oracle.for_programs or 1.0
        message = {"do": "arrange", "handle": view.handle, "slots": slots, "memory": share}
        reply = self._ask(message)
        self._view = view
        self._base = _whole(reply.get("arena")), _whole(reply.get("size"))

    def detach(self) -> None:
        """Let go of the arena, before it is made anew."""
        if self._view is not None:
            self._ask({"do": "forget"})
            self._view = None

    def rest(self) -> None:
        """Have it keep its module and no other memory, for a later pair."""
        reply = self._ask({"do": "rest"})
        self._view = None
        self._let_go()  # of what it has just given back
        self._note(reply)

    def refill(self, sets: Sequence[InputSet], slots: Sequence[int] | None = None) -> None:
        """Put new contents behind the same addresses, while the program cannot look."""
        chosen = range(len(sets)) if slots is None else slots
        self._oracle.fill(list(chosen), [sets[slot] for slot in chosen])

    def run(self, slots: Sequence[int]) -> Launches:
        """Launch once per slot. The clock runs from thaw to the reply; then all stands still."""
        reply, elapsed = self._exchange({"do": "run", "slots": list(slots)}, ())
        return self._launches(self._accept(reply), elapsed, len(slots))

    def capture(self, slots: Sequence[int]) -> Launches | str:
        """Record the launches into a graph; a text says why that cannot be done."""
        reply = self._ask({"do": "capture", "slots": list(slots)})
        if "uncapturable" in reply:
            return str(reply["uncapturable"])
        self._note_segments(reply.get("segments"))
        self.nodes = _whole(reply.get("nodes"))
        return self._launches(reply, 0.0, len(slots))

    def replay_from(self, first: int, launches: int) -> None:
        """Replay the graph without its first launches."""
        self._ask({"do": "replay_from", "first": first, "launches": launches})

    def replay(self) -> Replay:
        """Replay the graph under the judge's clock."""
        reply, elapsed = self._exchange({"do": "replay"}, ())
        return Replay(wall_us=elapsed, event_us=_number(self._accept(reply).get("event_us")))

    def kernels(self, slots: Sequence[int], launches: int) -> list[tuple[Kernel, float]]:
        """What it launches, with microseconds per call; its own word."""
        reply = self._ask({"do": "kernels", "slots": list(slots), "launches": launches})
        try:
            return [_kernel(each) for each in reply["kernels"][:_MOST_KERNELS]]
        except NONSENSE as error:
            raise _nonsense(error) from error

    def settle(self) -> None:
        """Remember what was chosen and compiled, so that its next processes need not do it again.

        Its own word, given back to nobody but itself.
        """
        said = self._ask({"do": "choices"})
        choices, files = said.get("choices"), said.get("cache")
        known = self._settled.get(self.source)
        if (known is not None and not known.seeded) or not isinstance(choices, list):
            return
        left = Settled(choices, files if isinstance(files, dict) else {})
        remember(self._settled, self.source, left)

    def release(self, launches: Launches) -> None:
        """Write over the outputs, then let the program forget them."""
        self.poison(launches)
        self._note(self._ask({"do": "release"}))

    def poison(self, launches: Launches) -> None:
        """Write over the outputs, but for those that are inputs or weights."""
        places = []
        for index in range(len(launches.addresses)):
            both = zip(self.outputs(launches, index), launches.addresses[index], strict=False)
            places += [
                place
                for position, (place, address) in enumerate(both)
                if isinstance(place, Placed)
                and position not in self.spared
                and not self._is_kept(address)
            ]
        self._oracle.poison(places)

    def input_now(self, slot: int, leaf: int) -> Placed:
        """What an input holds after the launches."""
        assert self._view is not None
        described = self._view.layout[slot][leaf]
        spec = self._view.sets[slot].leaves[leaf].spec
        return Placed(allocation="arena", offset=int(described["offset"]), spec=spec)

    def changed_inputs(self, slot: int) -> list[int]:
        """Leaves of a slot that no longer hold what the judge wrote."""
        return self._oracle.changed(slot)

    def guards_intact(self) -> bool:
        """Whether nothing was written between the inputs."""
        return self._oracle.guards_intact()

    def input_at(self, address: int) -> tuple[int, int] | None:
        """Slot and leaf of the input that an address lies in, if it lies in one."""
        start, size = self._base
        if self._view is None or not start <= address < start + size:
            return None
        for slot, leaves in enumerate(self._view.layout):
            for leaf, described in enumerate(leaves):
                offset = address - start - int(described["offset"])
                if 0 <= offset < int(described["span"]):
                    return slot, leaf
        return None

    def helpers(self) -> list[int]:
        """Processes that it started and that are not frozen with it."""
        return list(_children(self._child.pid))

    def close(self) -> None:
        """End the process, and let go of its memory, which the device then gives back."""
        super().close()
        self._let_go()

    def _let_go(self) -> None:
        handles = [handle for _, handle in self._segments.values()]
        self._segments.clear()
        if handles and self._oracle.is_open:
            self._oracle.unmap(handles)

    def _exchange(
        self, message: dict[str, object], fds: Sequence[int]
    ) -> tuple[dict[str, Any], float]:
        """Ask, and stand still where others want to time meanwhile: it may be compiling."""
        self._oracle.make_way()
        self._child.way = self._oracle.way
        return super()._exchange(message, fds)

    def _build(self, request: object) -> None:
        """Have it built while others use the device: the program waits for it."""
        way = self._oracle.way
        if way is None:
            super()._build(request)
            return
        self._child.freeze_busy()
        way.leave()
        try:
            super()._build(request)
        finally:
            way.come_back()
            self._child.thaw()

    def _accept(self, reply: dict[str, Any]) -> dict[str, Any]:
        if "error" in reply and reply.get("compiling"):
            raise ProgramFailed(Verdict.BUILD_FAILED, str(reply["error"]))
        return super()._accept(reply)

    def _launches(self, reply: dict[str, Any], elapsed: float, count: int) -> Launches:
        try:
            launches = Launches(
                elapsed_us=elapsed,
                waited_us=0.0,
                event_us=_number(reply.get("event_us", 0.0)),
                tree=reply["tree"],
                specs=tuple(read_spec(each) for each in reply["leaves"]),
                addresses=tuple(tuple(int(a) for a in each) for each in reply["addresses"]),
            )
        except NONSENSE as error:
            raise _nonsense(error) from error
        if len(launches.addresses) != count:
            raise _nonsense(f"{len(launches.addresses)} outputs of {count} launches")
        self.persisting = max(self.persisting, _whole(reply.get("persisting", 0)))
        unknown = any(
            self._segment_of(address) is None and self.input_at(address) is None
            for each in launches.addresses
            for address in each
            if address
        )
        if unknown:
            self._note_segments(self._ask({"do": "where"}).get("segments"))
        return launches if not unknown else _as_new(launches)

    def _note(self, reply: dict[str, Any]) -> None:
        self._note_state(reply.get("state"))
        self._note_segments(reply.get("segments"))

    def _note_segments(self, described: Any) -> None:
        try:
            for base, size, handle in described:
                self._note_segment(int(base), int(size), str(handle))
        except NONSENSE as error:
            raise _nonsense(error) from error

    def _note_segment(self, base: int, size: int, handle: str) -> None:
        """Map an allocation, in place of those that lay there before and were given back."""
        gone = [
            start
            for start, (length, known) in self._segments.items()
            if start < base + size and base < start + length and known != handle
        ]
        if gone:
            self._oracle.unmap([self._segments.pop(start)[1] for start in gone])
        if base not in self._segments:
            self._segments[base] = min(size, self._oracle.map(handle)), handle

    def _segment_of(self, address: int) -> tuple[int, str] | None:
        for base, (size, handle) in self._segments.items():
            if base <= address < base + size:
                return base, handle
        return None

    def _found(self, address: int, spec: Spec) -> Placed | str:
        start, size = self._base
        if spec.count == 0:
            return Placed(allocation="arena", offset=0, spec=spec)
        if self._view is not None and start <= address < start + size:
            return Placed(allocation="arena", offset=address - start, spec=spec)
        segment = self._segment_of(address)
        if segment is None:
            return "in memory that cannot be read from outside (host or unexportable memory)"
        return Placed(allocation=segment[1], offset=address - segment[0], spec=spec)

    def _state_place(self, key: str) -> Placed:
        spec, address = self._state[key]
        place = self._found(address, spec)
        if isinstance(place, str):
            raise ProgramFailed(Verdict.WRONG, f"{key} lies {place}")
        return place

    def _is_kept(self, address: int) -> bool:
        start, size = self._base
        if start <= address < start + size:
            return True
        return any(
            place <= address < place + spec.span_bytes for spec, place in self._state.values()
        )


def _as_new(launches: Launches) -> Launches:
    """Memory was new to the judge: not a batch whose time counts."""
    return Launches(
        elapsed_us=launches.elapsed_us, waited_us=launches.waited_us, tree=launches.tree,
        specs=launches.specs, addresses=launches.addresses, event_us=launches.event_us,
        faults=1 << 20,
    )  # fmt: skip


def _children(pid: int) -> Iterator[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError as error:
        raise EvaluationLost("the process is gone") from error
    for task in tasks:
        try:
            yield from (int(each) for each in (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue


def _kernel(said: dict[str, Any]) -> tuple[Kernel, float]:
    def number(name: str) -> int | None:
        return None if said[name] is None else int(said[name])

    kernel = Kernel(
        name=str(said["name"])[:200],
        own=bool(said["own"]),
        launches=max(1, round(float(said["launches"]))),
        share=min(max(float(said["share"]), 0.0), 1.0),
        registers=number("registers"),
        spills=number("spills"),
        shared_bytes=number("shared_bytes"),
        grid=tuple(int(n) for n in said["grid"]),
        block=tuple(int(n) for n in said["block"]),
        precision=str(said["precision"])[:200],
        config=str(said["config"])[:500],
    )
    us = float(said["us"])
    if not math.isfinite(us):
        raise ValueError(f"a kernel takes a time; got {us}")
    return kernel, max(us, 0.0)


def _nonsense(why: object) -> ProgramFailed:
    return ProgramFailed(Verdict.CRASHED, f"its process answered nonsense: {why}")


def _whole(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise _nonsense(repr(value)[:200])
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise _nonsense(repr(value)[:200])
    return float(value)
