"""The trusted process on a device: inputs, right answers and comparisons that never leave it.

It alone maps the memory of candidates. What it holds itself lies in allocations that it never
exports; what it exports (inputs, weights) holds nothing else.
"""

import math
import socket
import time

import torch

from kernelsmith.evaluate.worker import inputs as recipes
from kernelsmith.evaluate.worker.answers import Answer, Output
from kernelsmith.evaluate.worker.cuda import compare, driver
from kernelsmith.evaluate.worker.cuda.again import asked_again
from kernelsmith.evaluate.worker.cuda.heat import heat
from kernelsmith.evaluate.worker.cuda.kept import Kept
from kernelsmith.evaluate.worker.cuda.many import relative_many
from kernelsmith.evaluate.worker.cuda.memory import Mapped, Shared, poison
from kernelsmith.evaluate.worker.cuda.needs import needed
from kernelsmith.evaluate.worker.cuda.predicted import predicted
from kernelsmith.evaluate.worker.cuda.slices import DeviceCase
from kernelsmith.evaluate.worker.cuda.speeds import measure_speeds
from kernelsmith.evaluate.worker.cuda.summary import (
    answer_bytes,
    attach_scores,
    plain,
    same_bits,
    set_bytes,
    summary,
)
from kernelsmith.evaluate.worker.reference import Message, Misplaced, Reference, Verb, answer
from kernelsmith.evaluate.worker.trees import describe, paths, unflatten

_KEPT_SHARE = 0.1
"""Of the device's memory, for input sets and again for answers that are kept at hand."""
_IDLE_SHARE = 0.1
_IDLE_BESIDE = 0.02
"""What torch may keep for its next allocation: giving gigabytes back takes time. Less where others
need them meanwhile."""


class DeviceReference(Reference):
    """One task's reference on the device."""

    device = "cuda"
    case: type[DeviceCase] = DeviceCase

    def __init__(self) -> None:
        super().__init__()
        torch.cuda.init()
        self._total_bytes = torch.cuda.get_device_properties(0).total_memory
        room, self._idle_bytes = (
            int(share * self._total_bytes) for share in (_KEPT_SHARE, _IDLE_SHARE)
        )
        self._recipes: dict[int, tuple[int, str]] = {}
        self._drawn: Kept[recipes.InputSet] = Kept(room, set_bytes)
        self._answered: Kept[Answer] = Kept(room, answer_bytes)
        self._arena: Shared | None = None
        self._lent: Shared | None = None
        self._mapped: dict[str, Mapped] = {}
        self._slots: dict[int, int] = {}
        """The set that each slot of the arena holds."""
        self._probe = torch.zeros(1, device="cuda")

    def verbs(self) -> dict[str, Verb]:
        """What the judge may ask for."""
        return asked_again(self._verbs(), self._let_go)

    def _verbs(self) -> dict[str, Verb]:
        return super().verbs() | {
            "predict": self.predict,
            "limit": self.limit,
            "rest": self.rest,
            "speeds": self.speeds,
            "needs": self.needs,
            "lend": self.lend,
            "take_back": self.take_back,
            "arrange": self.arrange,
            "fill": self.fill,
            "renew": self.renew,
            "changed": self.changed,
            "guards": self.guards,
            "compare": self.compare,
            "show": self.show,
            "explain": self.explain,
            "eager_excess": self.eager_excess,
            "magnified": self.magnified,
            "overwrite": self.overwrite,
            "poison": self.poison,
            "relative": self.relative,
            "map": self.map,
            "unmap": self.unmap,
            "idle": self.idle,
            "heat": heat,
        }

    def predict(self, message: Message, _: list[int]) -> Message:
        """Say how much memory a workload takes, before any of it is kept."""
        return predicted(self._module, self._entry, message, training=self._training)

    def limit(self, message: Message, _: list[int]) -> Message:
        """Keep to a share of the device's memory: others have theirs, until it is told to rest."""
        share, kept = (float(str(message[name])) for name in ("share", "kept"))
        torch.cuda.set_per_process_memory_fraction(share)
        self.case.crowded = True
        self._drawn.most = self._answered.most = int(min(_KEPT_SHARE, kept) * self._total_bytes)
        self._idle_bytes = int(_IDLE_BESIDE * self._total_bytes)
        return {}

    def workload(self, message: Message, fds: list[int]) -> Message:
        """Construct the reference for one workload."""
        self._forget()
        return super().workload(message, fds)

    def weights(self, message: Message, fds: list[int]) -> Message:
        """Draw new weights, in place; answers of the old ones are worth nothing now."""
        self._answered.clear()
        return super().weights(message, fds)

    def inputs(self, message: Message, _: list[int]) -> Message:
        """Name one input set per seed; the same seed gives the same set at any time."""
        seeds, variant = message["seeds"], str(message["variant"])
        assert isinstance(seeds, list)
        made = []
        for seed in seeds:
            which = self._next
            found = self._make(int(seed), variant)
            if found is None:
                return {"inapplicable": True}
            self._recipes[which] = int(seed), variant
            self._drawn.put(which, found)
            self._next += 1
            made.append(
                {
                    "id": which,
                    "tree": found.tree,
                    "keywords": found.keywords,
                    "leaves": [describe(leaf) for leaf in found.leaves],
                    "paths": paths(found.tree, "input"),
                }
            )
        return {"sets": made}

    def answers(self, message: Message, _: list[int]) -> Message:
        """Say what is right for sets made before: forms and numbers; values stay here."""
        ids, before = message["ids"], message.get("before") or []
        assert isinstance(ids, list)
        assert isinstance(before, list)
        self._before = tuple(before)
        return {"answers": [self._summary(which) for which in ids]}

    def repeat(self, message: Message, fds: list[int]) -> Message:
        """Run the reference on the same inputs again: asked once, and no answer is needed."""
        self._make_way()
        return super().repeat(message, fds)

    def examine(self, message: Message, fds: list[int]) -> Message:
        """Look for work that the task does not need; likewise."""
        self._make_way()
        return super().examine(message, fds)

    def compare(self, message: Message, _: list[int]) -> Message:
        """Hold one tensor of a candidate against the answer: the judge's norm, in numbers."""
        wanted = self._wanted(message)
        found = self._place(message["place"])
        if not wanted.eager.is_floating_point():
            return self._compare_discrete(message, found, wanted)
        seen = compare.distance(
            found, wanted.exact, wanted.eager,
            atol=float(str(message["atol"])), rtol=float(str(message["rtol"])),
            allowed=float(str(message["allowed"])),
        )  # fmt: skip
        off, excess = plain(seen.error), plain(seen.excess)
        return {"off": off, "strangers": seen.strangers, "excess": excess}

    def _compare_discrete(self, message: Message, found: torch.Tensor, wanted: Output) -> Message:
        if compare.discrete_differs(found, wanted.exact) == 0:
            return {"wrong": 0, "message": ""}
        if wanted.scores is not None and wanted.dim is not None:
            count, said = compare.indices_wrong(
                found, wanted.exact, wanted.eager, wanted.scores, wanted.dim,
                float(str(message["allowed"])),
            )  # fmt: skip
            return {"wrong": count, "message": f"{wanted.path} {said}" if count else ""}
        return {"wrong": compare.discrete_differs(found, wanted.exact), "message": None}

    def show(self, message: Message, _: list[int]) -> Message:
        """Put one output and its answer into the host's memory, for a message with hints."""
        wanted, found = self._wanted(message), self._place(message["place"])
        shown = [found.cpu(), wanted.exact.cpu(), wanted.eager.cpu()]
        others = [each.cpu() for each in wanted.alternatives]
        scores = None if wanted.scores is None else wanted.scores.cpu()
        self._kept.append([shown, others, scores])
        return {
            "found": describe(shown[0]), "exact": describe(shown[1]), "eager": describe(shown[2]),
            "alternatives": [describe(each) for each in others],
            "scores": None if scores is None else describe(scores), "dim": wanted.dim,
            "path": wanted.path,
        }  # fmt: skip

    def explain(self, message: Message, _: list[int]) -> Message:
        """Say in words how a large output is wrong."""
        wanted, found = self._wanted(message), self._place(message["place"])
        bounds = {name: float(str(message[name])) for name in ("atol", "rtol", "allowed")}
        seen = compare.distance(found, wanted.exact, wanted.eager, **bounds)
        said = compare.explain_float(
            wanted.path, found, wanted.exact, wanted.eager, seen, kind=str(message["kind"]),
            eager_error=float(str(message["eager_error"])), **bounds,
        )  # fmt: skip
        return {"message": said, "path": wanted.path}

    def eager_excess(self, message: Message, _: list[int]) -> Message:
        """By how much eager itself leaves the task's tolerance, at its worst element."""
        wanted = self._wanted(message)
        seen = compare.distance(
            wanted.eager, wanted.exact, wanted.eager, allowed=math.inf,
            atol=float(str(message["atol"])), rtol=float(str(message["rtol"])),
        )  # fmt: skip
        return {"excess": plain(seen.excess)}

    def magnified(self, message: Message, _: list[int]) -> Message:
        """How far off outputs are in float64 on inputs that carry 18 bits: the worst run."""
        which = int(str(message["id"]))
        outputs = self._answer(which).outputs
        errors = [0.0] * len(outputs)
        try:
            for run in self._case.shifted(self._set(which), int(str(message["runs"]))):
                for position, output in enumerate(outputs):
                    if output.eager.is_floating_point():
                        seen = compare.distance(
                            run[position], output.exact, output.eager,
                            atol=math.inf, rtol=0.0, allowed=math.inf,
                        )  # fmt: skip
                        errors[position] = max(errors[position], seen.error)
                del run  # before the next one is there
        except torch.OutOfMemoryError:
            if self.case.crowded:
                raise  # alone there may be room; without it, a right answer may seem wrong
            errors = [0.0] * len(outputs)
        return {"errors": errors}

    def reduce(self, message: Message, _: list[int]) -> Message:
        """Reduce a candidate's outputs to the task's statistic."""
        places = message["places"]
        assert isinstance(places, list)
        outputs = unflatten(message["tree"], [self._place(each) for each in places])
        row = self._case.reduce(outputs).cpu()
        self._kept.append(row)
        return {"row": describe(row)}

    def statistic(self, message: Message, fds: list[int]) -> Message:
        """The task's statistic over fresh runs of the reference."""
        chosen = self._set(int(str(message["id"])))
        runs = self._case.statistics(chosen, int(str(message["runs"]))).cpu()
        self._kept.append(runs)
        return {"runs": describe(runs)}

    def lend(self, _: Message, __: list[int]) -> Message:
        """Copy the weights to where a candidate may read them."""
        model = self._case.model
        assert model is not None
        state = list(model.state_dict().values())
        self._lent = Shared([state])
        self._lent.write(0, state)
        torch.cuda.synchronize()
        return {"handle": self._lent.handle, "leaves": self._lent.layout[0]}

    def take_back(self, _: Message, __: list[int]) -> Message:
        """Give the copy of the weights back."""
        if self._lent is not None:
            self._lent.close()
            self._lent = None
        return {}

    def arrange(self, message: Message, _: list[int]) -> Message:
        """Make the arena: one slot per set, filled; both sides map the same one."""
        ids = message["ids"]
        assert isinstance(ids, list)
        self._close_arena()
        self._arena = Shared([self._set(which).leaves for which in ids])
        self._slots = dict(enumerate(ids))
        for slot, which in self._slots.items():
            self._arena.write(slot, self._set(which).leaves)
        torch.cuda.synchronize()
        return {
            "handle": self._arena.handle, "count": self._arena.count,
            "layout": self._arena.layout,
        }  # fmt: skip

    def fill(self, message: Message, _: list[int]) -> Message:
        """Put sets into slots; nobody else's process runs meanwhile."""
        assert self._arena is not None
        slots, ids = message["slots"], message["ids"]
        assert isinstance(slots, list)
        assert isinstance(ids, list)
        for slot, which in zip(slots, ids, strict=True):
            self._arena.write(slot, self._set(which).leaves)
            self._slots[slot] = which
        driver.reset_persisting_cache()
        torch.cuda.synchronize()
        return {}

    def renew(self, message: Message, _: list[int]) -> Message:
        """Draw a set for each slot, straight into it."""
        assert self._arena is not None
        seeds = message["seeds"]
        assert isinstance(seeds, list)
        ids = []
        with torch.device(self.device):
            for slot, seed in enumerate(seeds):
                leaves = recipes.draw(self._module.get_inputs, self._arguments, int(seed))
                self._arena.write(slot, leaves)
                self._recipes[self._next] = int(seed), "plain"
                self._slots[slot] = self._next
                ids.append(self._next)
                self._next += 1
        driver.reset_persisting_cache()
        torch.cuda.synchronize()
        return {"ids": ids}

    def changed(self, message: Message, _: list[int]) -> Message:
        """Name the leaves of a slot that no longer hold what was written there."""
        assert self._arena is not None
        slot = int(str(message["slot"]))
        chosen = self._set(self._slots[slot])
        both = zip(self._arena.views[slot], chosen.leaves, strict=True)
        return {"leaves": [i for i, (now, then) in enumerate(both) if not same_bits(now, then)]}

    def guards(self, _: Message, __: list[int]) -> Message:
        """Whether nobody wrote between the inputs."""
        assert self._arena is not None
        return {"intact": self._arena.guards_intact()}

    def overwrite(self, message: Message, _: list[int]) -> Message:
        """Write the weights into a candidate's own memory, behind its back."""
        places = message["places"]
        assert isinstance(places, dict)
        model = self._case.model
        assert model is not None
        for key, tensor in model.state_dict().items():
            if key in places:
                self._place(places[key]).copy_(tensor)
        torch.cuda.synchronize()
        return {}

    def poison(self, message: Message, _: list[int]) -> Message:
        """Write over outputs, so that what nobody wrote again shows."""
        places = message["places"]
        assert isinstance(places, list)
        poison([self._place(place) for place in places])
        torch.cuda.synchronize()
        return {}

    def relative(self, message: Message, _: list[int]) -> Message:
        """How far apart two sides' outputs are, launch by launch."""
        pairs = message["pairs"]
        assert isinstance(pairs, list)
        found = relative_many([(self._place(a), self._place(b)) for a, b in pairs])
        return {"errors": [plain(each) for each in found]}

    def map(self, message: Message, _: list[int]) -> Message:
        """Map a candidate's allocation here."""
        handle = str(message["handle"])
        if handle not in self._mapped:
            try:
                self._mapped[handle] = Mapped(handle)
            except (driver.DriverError, ValueError) as error:
                raise Misplaced(f"its memory cannot be mapped: {error}") from error
        return {"size": self._mapped[handle].size}

    def unmap(self, message: Message, _: list[int]) -> Message:
        """Let go of allocations, so that their owner's end frees them."""
        handles = message["handles"]
        assert isinstance(handles, list)
        torch.cuda.synchronize()
        for handle in handles:
            if mapped := self._mapped.pop(handle, None):
                mapped.close()
        return {}

    def idle(self, _: Message, __: list[int]) -> Message:
        """Time a kernel of no work: where another process keeps the device, it has to wait."""
        begun = time.perf_counter()
        self._probe.add_(1)
        torch.cuda.synchronize()
        return {"us": 1e6 * (time.perf_counter() - begun)}

    def speeds(self, _: Message, __: list[int]) -> Message:
        """Measure the device's bandwidths and matrix rate."""
        return measure_speeds()

    def needs(self, message: Message, _: list[int]) -> Message:
        """Bytes that any program for this task must move, and the arithmetic of this one."""
        chosen = self._set(int(str(message["id"])))
        return needed(self._case, chosen, int(str(message["seed"])))

    def release(self, message: Message, fds: list[int]) -> Message:
        """Forget sets and answers; memory that nobody needs goes back to the device."""
        keep = message["keep"]
        assert isinstance(keep, list)
        self._recipes = {i: each for i, each in self._recipes.items() if i in keep}
        if not keep:
            self._drawn.clear()
            self._answered.clear()
        if torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > self._idle_bytes:
            torch.cuda.empty_cache()  # the two sides need it more
        return super().release(message, fds)

    def rest(self, _: Message, __: list[int]) -> Message:
        """Hold nothing until the next workload, which may have the device alone."""
        self.case.crowded = False
        self._forget()
        return {}

    def _forget(self) -> None:
        self._case = self.case(None, None, None, None, None)  # a model is not held twice
        self._recipes.clear()
        self._close_arena()
        self._let_go()

    def _make_way(self) -> None:
        """Hold nothing at hand for a question of its own, where others need the memory."""
        if self.case.crowded:
            self._let_go()

    def _let_go(self) -> None:
        """Keep nothing at hand that can be made again."""
        self._drawn.clear()
        self._answered.clear()
        torch.cuda.empty_cache()

    def _close_arena(self) -> None:
        arena, self._arena = self._arena, None
        if arena is not None:
            arena.close()

    def _set(self, which: int) -> recipes.InputSet:
        seed, variant = self._recipes[which]

        def again() -> recipes.InputSet:
            made = self._make(seed, variant)
            assert made is not None
            return made

        return self._drawn.get(which, again)

    def _make(self, seed: int, variant: str) -> recipes.InputSet | None:
        dtype = self._case.dtype
        return recipes.make(
            self._module.get_inputs, self._arguments, dtype, seed, variant, self.device
        )

    _before: tuple[int, ...] = ()

    def _answer(self, which: int) -> Answer:
        before = self._before

        def made() -> Answer:
            chosen = self._set(which)
            earlier = [self._set(each) for each in before]
            found = self._case.answer_after(chosen, earlier, nudges=4)
            for output in found.outputs:
                attach_scores(output, chosen.leaves)
            return found

        return self._answered.get((which, before), made)

    def _summary(self, which: int) -> dict[str, object]:
        return summary(self._answer(which))

    def _wanted(self, message: Message) -> Output:
        found = self._answer(int(str(message["id"])))
        kind, position = str(message["part"]), int(str(message["position"]))
        if kind == "outputs":
            return found.outputs[position]
        return (found.mutated if kind == "mutated" else found.buffers)[position][1]

    def _place(self, place: object) -> torch.Tensor:
        assert isinstance(place, dict)
        where, offset = str(place["in"]), int(place["offset"])
        try:
            if where == "arena":
                assert self._arena is not None
                return self._arena.tensor({**place, "offset": offset})
            return self._mapped[where].tensor(place, offset)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise Misplaced(str(error)) from error


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer the judge until it hangs up."""
    del fds
    answer(control, DeviceReference().verbs())
