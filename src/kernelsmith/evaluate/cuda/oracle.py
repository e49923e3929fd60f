"""The trusted process on a device, as the judge sees it."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.cuda.answer import DeviceAnswer, Placed
from kernelsmith.evaluate.cuda.peak import Footprint
from kernelsmith.evaluate.cuda.ruler import DeviceRuler
from kernelsmith.evaluate.cuda.sizing import KEPT, ROOM_BESIDE, Predicted, rooms_beside
from kernelsmith.evaluate.failure import ProgramFailed, ReferenceBroken
from kernelsmith.evaluate.oracle import Oracle, spec_of
from kernelsmith.evaluate.rooms import LARGEST, PART
from kernelsmith.evaluate.sandbox.child import Child, Way
from kernelsmith.evaluate.settings import GpuSettings
from kernelsmith.evaluate.spent import Spent
from kernelsmith.evaluate.tensors import Float64, Tensor
from kernelsmith.evaluate.values import Answers, InputSet, Leaf, Setup

_ROOM = 0.05
"""Of the device's memory, for inputs that are arranged at once by whoever is alone."""
_SPARE = 1 / 32
"""Of the device's memory, for a program's libraries beside others. One that finds a device empty
takes most of it for scratch (97 GB of an H200 were seen). Who finds too little is judged again,
alone."""
_BEYOND = 1 / 16
"""Of the device's memory, on top of its rooms, before a process is told that there is no more:
what libraries take for scratch is in no prediction, and rooms are counted generously for all
together."""
TRYING = 29
"""Rooms for one forward of whose size nothing is known yet: three at a time. With five of them, who
fill what they may with scratch, all ran out of memory when many judges began at once."""
_TRIED = 1 / 4
"""Of the device's memory, for such a forward. Where that is too little, it is followed on tensors
without contents. A side that is timed beside others has as much again: libraries choose by what
they find, and would choose otherwise than what its rooms were counted for."""
_ASSERTED = "device-side assert"
_NEEDS, _EXAMINE, _SHIFTED, _MAGNIFIED = "needs", "examine", "shifted", "magnified"
"""Questions that are answered by calling the reference on altered inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """What a reference does on one workload, whatever its inputs and weights."""

    is_random: bool
    is_stateful: bool
    """It changes buffers."""
    mutates: bool
    """It changes inputs."""
    set_bytes: int
    """Of one input set and its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaView:
    """The inputs of a batch, as a lane maps them."""

    handle: str
    layout: list[list[dict[str, Any]]]
    sets: tuple[InputSet, ...]


_WIDEST = 4
"""Times the usual rooms."""
_ASKED_AGAIN, _SETTLE_S = 2, 1.5
"""A process that ends gives its memory back a little later."""


class DeviceOracle(Oracle):
    """Right answers on the device. Values stay there; forms and distances come back."""

    way: Way | None = None
    """The device, while others may use it, too."""
    batch_bytes = GpuSettings().sample_bytes
    """What a timed batch may take on each side."""
    unanswered = ""
    """The last question that the reference failed at."""
    is_short = False
    """Whether it found no memory in all the rooms that it can have beside others."""
    _has_most = False
    _widening = 1
    """How many times the usual rooms it takes."""
    _total = 0
    """Bytes of the device's memory, once that was asked."""
    _program = 0.0
    """The share of the device that a program takes, once that was asked."""

    def __init__(self, child: Child, task: Task, *, threads: int) -> None:
        self._asked = Spent()
        super().__init__(child, task, threads=threads)
        self._arena: ArenaView | None = None
        self._needs: dict[str, tuple[int, int | None]] = {}
        self._fitting: set[str] = set()
        self._rooms: int | None = None
        """As ``rooms`` says before any widening, once it was asked."""
        self.for_programs: float | None = None
        """What of the device's memory a program may take that is opened now; none: all of it."""
        self.avoided: set[str] = set()
        """What broke an earlier process of this reference: variants of inputs, and questions."""
        self._variants: dict[int, str] = {}
        self._broken = False
        self._at = ""
        """The workload that it was constructed for."""
        self._random: dict[str, bool] = {}
        self.natures: dict[str, Nature] = {}
        """What is known of the reference, by workload."""
        self.batches: dict[tuple[str, str], int] = {}
        """How many launches make a batch, by workload and the baseline's source."""
        self.alone: dict[tuple[str, str, bool], float] = {}
        """What a baseline took with nobody beside it: by workload, source and whether captured."""
        self.room = 1 << 30
        """Bytes of input that are arranged at once."""

    def asked(self) -> str:
        """Seconds by question since this was last looked at: where a judgement's time went."""
        spent, self._asked = self._asked, Spent()
        return str(spent)

    @property
    def is_beside(self) -> bool:
        """Whether others may use the device now, and its memory."""
        return self.way is not None

    @property
    def is_open(self) -> bool:
        """Whether its process is still there, and of any use."""
        return self._child.alive and not self._broken

    def workload(self, workload: Workload, seed: int) -> Setup:
        """Construct the reference, if the device has room for what judging it takes."""
        if workload.name not in self._fitting:
            self._refuse_too_large(workload)
            self._fitting.add(workload.name)
        self._at = workload.name
        return super().workload(workload, seed)

    def is_random(self, chosen: InputSet) -> bool:
        """Whether two runs on the same inputs differ; asked once for each workload."""
        if self._at not in self._random:
            self._random[self._at] = super().is_random(chosen)
        return self._random[self._at]

    def rooms(self) -> int:
        """How many rooms a judgement takes beside others; 0 where it needs the device alone.

        Found by one forward of each workload, once.
        """
        if self._rooms is None:
            found = {each.name: self._predict(each) for each in self._task.workloads}
            counts = [rooms_beside(each, self.batch_bytes) for each in found.values()]
            known = [each for each in counts if each is not None]
            self._rooms = max(known) if len(known) == len(counts) else 0
            self._program = max(each.program for each in found.values())
            self._total = max(each.total for each in found.values())
            if self._rooms:  # else it is asked again when nobody else is there
                self._fitting |= set(found)
                self.room = min(int(ROOM_BESIDE * each.total) for each in found.values())
        return LARGEST if self._has_most else self._widening * self._rooms

    def widen(self) -> bool:
        """Take twice the rooms from now on, where memory was short; says whether there are as many.

        Twice at most: it may be others who took more than is theirs, and for who takes all rooms
        everybody stands still. Who finds none in those either is known to be short: whether it has
        the device alone from then on, or the most that there is beside others, is the backend's to
        say.
        """
        wider = 2 * self._widening
        if wider > _WIDEST or not 0 < wider * (self._rooms or 0) <= LARGEST:
            self.is_short = True
            return False
        self._widening = wider
        return True

    def widen_most(self) -> None:
        """Take as many rooms from now on as one may have beside others: hardly anybody is there."""
        self._has_most = self.is_short = True

    def narrow(self) -> None:
        """Go back from the most rooms: it was a candidate that found no memory, not the task."""
        self._has_most = self.is_short = False

    @property
    def is_sized(self) -> bool:
        """Whether ``rooms`` has its answer at hand."""
        return self._rooms is not None

    @contextmanager
    def within_rooms(self) -> Iterator[None]:
        """Keep to its rooms, here and in the programs that are opened meanwhile."""
        share = min(self.rooms() * PART + _BEYOND, 1.0)
        own = max(share - self._program, share / 2)
        self._ask({"do": "limit", "share": own, "kept": KEPT * share})
        self.for_programs = self._at_most(1.5 * self._program + _SPARE)
        try:
            yield
        finally:
            self.for_programs = None
            if self.is_open:
                self._ask({"do": "limit", "share": 1.0, "kept": KEPT * share})

    @contextmanager
    def timing_in_rooms(self) -> Iterator[None]:
        """Have both sides of a timed pair keep to the same part of the memory.

        Libraries choose by what they find. That may not be whatever others have left of the device,
        nor all of that, for others are to come.
        """
        batch = self.batch_bytes / max(self._total, self.batch_bytes)
        own = 2 * (self._program + batch)  # a graph's memory is its own
        self.for_programs = self._at_most(max(_TRIED, own) + _SPARE)
        try:
            yield
        finally:
            self.for_programs = None

    def _at_most(self, usual: float) -> float:
        """What a program may take; more rooms are for it, too: it may have been short."""
        return 1.0 if self._has_most else min(self._widening * usual, 1.0)

    def _predict(self, workload: Workload) -> Predicted:
        asked: dict[str, object] = {
            "do": "predict", "arguments": dict(workload.arguments),
            "init": dict(workload.init), "dtype": workload.dtype,
            "share": _TRIED if self.is_beside else 1.0,
        }  # fmt: skip
        self._child.way = self.way  # most of it is libraries that load: nobody waits for that
        try:
            said = self._ask(asked)
        finally:
            self._child.way = None
        self.room = int(_ROOM * said["total"])
        footprint = None if said["footprint"] is None else Footprint(**said["footprint"])
        return Predicted(footprint=footprint, free=int(said["free"]), total=int(said["total"]))

    def _refuse_too_large(self, workload: Workload) -> None:
        found = self._predict(workload)
        for _ in range(_ASKED_AGAIN):
            if found.peak is None or not found.free < found.peak <= found.total:
                break
            time.sleep(_SETTLE_S)
            found = self._predict(workload)
        if found.peak is None or found.peak <= found.free:
            return
        sizes = found.footprint
        assert sizes is not None
        raise UsageError(
            f"task {self._task.name!r} (workload {workload.name!r}) needs about "
            f"{found.peak / 1e9:.1f} GB of device memory (inputs {sizes.inputs / 1e9:.1f}, outputs "
            f"{sizes.outputs / 1e9:.1f}, weights {sizes.weights / 1e9:.1f} GB, for reference, "
            f"baseline and candidate side by side); {found.free / 1e9:.1f} of "
            f"{found.total / 1e9:.1f} GB are free: use a smaller workload or a larger device"
        )

    def inputs(self, seeds: Sequence[int], variant: str = "plain") -> list[InputSet] | None:
        """Draw one set per seed; ``None`` where the variant does not apply."""
        if variant in self.avoided:
            return None
        found = super().inputs(seeds, variant)
        self._variants.update({each.id: variant for each in found or ()})
        return found

    def shifted(self, chosen: InputSet, runs: int = 4) -> list[list[Tensor]]:
        """Outputs in float64 on inputs that carry 18 bits, one list a run."""
        return [] if _SHIFTED in self.avoided else super().shifted(chosen, runs)

    def degenerate(self, sets: Sequence[InputSet]) -> list[str]:
        """In what way the task asks for less than it seems to; empty if it does not."""
        return [] if _EXAMINE in self.avoided else super().degenerate(sets)

    def release(self, keep: Sequence[InputSet] = ()) -> None:
        """Let the process forget all sets but those to keep, and all answers read so far."""
        if not self._broken:
            super().release(keep)

    def answers(
        self, sets: Sequence[InputSet], *, nudges: int = 4, before: Sequence[InputSet] = ()
    ) -> list[Answers]:
        """Say what is right for each set: forms, and rulers to measure others with."""
        del nudges
        said = self._ask(
            {
                "do": "answers", "ids": [each.id for each in sets],
                "before": [each.id for each in before],
            }
        )  # fmt: skip
        both = zip(sets, said["answers"], strict=True)
        return [self._device_answers(chosen, each) for chosen, each in both]

    def _device_answers(self, chosen: InputSet, said: dict[str, Any]) -> Answers:
        def answer(part: str, position: int, each: dict[str, Any]) -> DeviceAnswer:
            return DeviceAnswer(
                path=each["path"],
                eager=spec_of(each["eager"]),
                eager_error=float(each["eager_error"]),
                scale=float(each["scale"]),
                is_finite=bool(each["finite"]),
                ruler=DeviceRuler(self, chosen.id, part, position),
            )

        outputs = said["outputs"]
        return Answers(
            tree=said["tree"],
            outputs=tuple(answer("outputs", i, each) for i, each in enumerate(outputs)),
            aliases=tuple(each["aliases"] for each in outputs),
            kept=tuple(bool(each["kept"]) for each in outputs),
            mutated=tuple(
                (leaf, answer("mutated", i, each)) for i, (leaf, each) in enumerate(said["mutated"])
            ),
            buffers=tuple(
                (key, answer("buffers", i, each)) for i, (key, each) in enumerate(said["buffers"])
            ),
            exact=bool(said["exact"]),
        )

    def reduce(self, tree: object, outputs: Sequence[Any]) -> Float64:
        """The task's own statistic of a candidate's outputs."""
        places = [each.to_message() for each in outputs]
        reply = self._ask({"do": "reduce", "tree": tree, "places": places})
        return self._host_leaf(reply["row"]).tensor.float64()

    def statistics(self, chosen: InputSet, runs: int) -> Float64:
        """The task's own statistic over fresh runs of the reference, one row a run."""
        reply = self._ask({"do": "statistic", "id": chosen.id, "runs": runs})
        return self._host_leaf(reply["runs"]).tensor.float64()

    def arrange(self, sets: Sequence[InputSet]) -> ArenaView:
        """Make the arena that both sides read from."""
        said = self._ask({"do": "arrange", "ids": [each.id for each in sets]})
        self._arena = ArenaView(handle=said["handle"], layout=said["layout"], sets=tuple(sets))
        return self._arena

    def fill(self, slots: Sequence[int], sets: Sequence[InputSet]) -> None:
        """Put other sets behind the same addresses."""
        self._ask({"do": "fill", "slots": list(slots), "ids": [each.id for each in sets]})

    def renew(self, view: ArenaView, seeds: Sequence[int]) -> list[InputSet]:
        """Draw new sets into all slots; returns them under their names."""
        ids = self._ask({"do": "renew", "seeds": list(seeds)})["ids"]
        return [replace(each, id=which) for each, which in zip(view.sets, ids, strict=True)]

    def changed(self, slot: int) -> list[int]:
        """Leaves of a slot that no longer hold what was written."""
        return list(self._ask({"do": "changed", "slot": slot})["leaves"])

    def guards_intact(self) -> bool:
        """Whether nothing was written between the inputs."""
        return bool(self._ask({"do": "guards"})["intact"])

    def lend(self) -> dict[str, Any]:
        """Where a candidate can read the weights for a moment."""
        return self._ask({"do": "lend"})

    def take_back(self) -> None:
        """End that moment."""
        self._ask({"do": "take_back"})

    def map(self, handle: str) -> int:
        """Map an allocation of a lane; returns its size."""
        return int(self._ask({"do": "map", "handle": handle})["size"])

    def unmap(self, handles: Sequence[str]) -> None:
        """Let go of a lane's allocations."""
        self._ask({"do": "unmap", "handles": list(handles)})

    def overwrite(self, places: dict[str, Placed]) -> None:
        """Write the current weights into a lane's own memory."""
        said = {key: place.to_message() for key, place in places.items()}
        self._ask({"do": "overwrite", "places": said})

    def poison(self, places: Sequence[Placed]) -> None:
        """Write over outputs."""
        self._ask({"do": "poison", "places": [place.to_message() for place in places]})

    def relative(self, pairs: Sequence[tuple[Placed, Placed]]) -> list[float]:
        """How far apart two sides' outputs are, one number a pair."""
        said = [[a.to_message(), b.to_message()] for a, b in pairs]
        return [float(each) for each in self._ask({"do": "relative", "pairs": said})["errors"]]

    def idle_us(self) -> float:
        """How long a kernel of no work takes right now."""
        return float(self._ask({"do": "idle"})["us"])

    def heat(self, us: float) -> None:
        """Keep the device's memory busy for so long, and leave nothing of use in its caches."""
        self._ask({"do": "heat", "us": us})

    def speeds(self) -> dict[str, Any]:
        """Measured ceilings of the device."""
        return self._ask({"do": "speeds"})

    def knows_needs(self, workload: Workload) -> bool:
        """Whether ``needs`` was asked before."""
        return workload.name in self._needs or _NEEDS in self.avoided

    def needs(self, workload: Workload, draw: Callable[[], int]) -> tuple[int, int | None]:
        """Compulsory bytes of a launch, and floating-point operations of the reference."""
        if _NEEDS in self.avoided:
            return 0, None
        if workload.name not in self._needs:
            super().workload(workload, draw())
            sets = self.inputs([draw()])
            assert sets is not None
            said = self._ask({"do": "needs", "id": sets[0].id, "seed": draw()})
            self._needs[workload.name] = int(said["bytes"]), said["flops"]
            self.release()
        return self._needs[workload.name]

    def make_way(self) -> None:
        """Let those have the device who wait to time; between two questions it does nothing."""
        if self.way is not None and self.way.is_wanted:
            self.way.step_aside()

    def rest(self) -> None:
        """Let go of the model and of all memory; the next question is for a workload."""
        self._ask({"do": "rest"})

    def _ask(self, message: dict[str, object], fds: Sequence[int] = ()) -> dict[str, Any]:
        with self._asked.on("made way"):
            self.make_way()
        try:
            with self._asked.on(str(message["do"])):
                reply = super()._ask(message, fds)
        except UsageError as error:
            self.unanswered = str(message["do"])
            self._blame(message, str(error))
            raise
        if "misplaced" in reply:
            raise ProgramFailed(
                Verdict.WRONG, f"its memory cannot be read: {str(reply['misplaced'])[:500]}"
            )
        return reply

    def _blame(self, message: dict[str, object], said: str) -> None:
        """A kernel's assertion ends its process's device for good, also where we asked for it.

        Raises:
            ReferenceBroken: By inputs that the task did not think of; they are not tried again.
        """
        if _ASSERTED not in said:
            return
        self._broken = True
        asked = message.get("ids") or [message.get("id")]
        assert isinstance(asked, list)
        variants = {self._variants.get(each, "plain") for each in asked} - {"plain"}
        question = str(message["do"])
        altered = question in (_NEEDS, _EXAMINE, _SHIFTED, _MAGNIFIED)
        causes = {question} if altered else variants
        if causes - self.avoided:
            self.avoided |= causes
            raise ReferenceBroken(f"a kernel of the reference asserts on {', '.join(causes)}")

    def _leaf(self, described: dict[str, Any]) -> Leaf:
        if "layout" in described:
            return self._host_leaf(described)  # which says that it cannot be judged
        return Leaf(spec_of(described), bytearray())
