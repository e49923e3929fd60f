"""The reference's side of the boundary: inputs, weights and right answers from secret seeds."""

import socket
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import torch

from kernelsmith.evaluate.sandbox.channel import receive, send
from kernelsmith.evaluate.worker import answers, degenerate, inputs, parameters
from kernelsmith.evaluate.worker.arena import Arena
from kernelsmith.evaluate.worker.inputs import InputSet
from kernelsmith.evaluate.worker.trees import describe, flatten, paths, unflatten

FILE = "task.py"
Message = dict[str, object]
Verb = Callable[[Message, list[int]], Message]


class Misplaced(ValueError):
    """Memory is not where, or not what, a candidate's process said."""


class Reference:
    """One task's source, one workload at a time, and the input sets that are still in use."""

    device = "cpu"
    case: type[answers.Case] = answers.Case

    def __init__(self) -> None:
        self._module: ModuleType
        self._entry = ""
        self._training = False
        self._case: answers.Case
        self._arguments: dict[str, object] = {}
        self._sets: dict[int, InputSet] = {}
        self._kept: list[object] = []
        self._next = 0

    def open(self, message: Message, _: list[int]) -> Message:
        """Run the task's source and say what it defines."""
        torch.set_num_threads(int(str(message["threads"])))
        self._module = ModuleType("task")
        source = str(message["source"])
        exec(compile(source, FILE, "exec"), self._module.__dict__)
        self._entry, self._training = str(message["entry"]), bool(message["training"])
        missing = [n for n in (self._entry, "get_inputs") if not hasattr(self._module, n)]
        workloads = None
        if hasattr(self._module, "get_workloads"):
            workloads = flatten(self._module.get_workloads(), [])
        return {
            "missing": missing,
            "workloads": workloads,
            "statistic": hasattr(self._module, "statistic"),
            "torch": torch.__version__,
        }

    def workload(self, message: Message, _: list[int]) -> Message:
        """Construct the reference for one workload, with weights of its own."""
        arguments, init = message["arguments"], message["init"]
        assert isinstance(arguments, dict)
        assert isinstance(init, dict)
        self._arguments = arguments
        seed = int(str(message["seed"]))
        dtype = getattr(torch, str(message["dtype"])) if message["dtype"] else None
        target = getattr(self._module, self._entry)
        leaves: list[torch.Tensor] = []
        tree: object = []
        keywords = False
        model: torch.nn.Module | None = None
        if self._entry == "Model":
            torch.manual_seed(seed)
            values: Any = getattr(self._module, "get_init_inputs", list)(**init)
            keywords = isinstance(values, dict)
            values = [values] if keywords else list(values)
            tree = flatten(values, leaves)
            torch.manual_seed(seed)
            with torch.device(self.device) if self.device != "cpu" else nullcontext():
                model = target(**values[0]) if keywords else target(*values)
            model = model.to(self.device) if dtype is None else model.to(self.device, dtype)
            model.train(self._training)
            if message["randomise"]:
                parameters.randomise(model, seed)
        scores = getattr(self._module, "index_scores", None)
        statistic = getattr(self._module, "statistic", None)
        self._case = self.case(model, None if model else target, dtype, scores, statistic)
        self._kept = [leaves]
        return {
            "init": tree,
            "keywords": keywords,
            "leaves": [describe(leaf) for leaf in leaves],
            "state": self._state(),
        }

    def weights(self, message: Message, _: list[int]) -> Message:
        """Draw new weights, in place."""
        if self._case.model is not None:
            few = bool(message.get("few"))
            parameters.randomise(self._case.model, int(str(message["seed"])), few=few)
            self._case.renew()
        return {"state": self._state()}

    def inputs(self, message: Message, _: list[int]) -> Message:
        """Make one input set per seed, in the variant asked for."""
        seeds = message["seeds"]
        assert isinstance(seeds, list)
        made = []
        for seed in seeds:
            made_set = inputs.make(
                self._module.get_inputs, self._arguments, self._case.dtype, int(seed),
                str(message["variant"]), self.device,
            )  # fmt: skip
            if made_set is None:
                return {"inapplicable": True}
            self._sets[self._next] = made_set
            made.append(
                {
                    "id": self._next,
                    "tree": made_set.tree,
                    "keywords": made_set.keywords,
                    "leaves": [describe(leaf) for leaf in made_set.leaves],
                    "paths": paths(made_set.tree, "input"),
                }
            )
            self._next += 1
        return {"sets": made}

    def answers(self, message: Message, _: list[int]) -> Message:
        """Run the reference as it is and in float64 on sets made before."""
        ids = message["ids"]
        assert isinstance(ids, list)
        nudges, before = int(str(message["nudges"])), message.get("before") or []
        assert isinstance(before, list)
        earlier = [self._set(i) for i in before]
        found = [self._case.answer_after(self._set(i), earlier, nudges=nudges) for i in ids]
        self._kept.append(found)
        return {"answers": [each.to_message() for each in found]}

    def shifted(self, message: Message, _: list[int]) -> Message:
        """Run the reference in float64 on slightly different inputs."""
        chosen = self._set(int(str(message["id"])))
        found = [*self._case.shifted(chosen, int(str(message["runs"])))]
        self._kept.append(found)
        return {"runs": [[describe(leaf) for leaf in run] for run in found]}

    def repeat(self, message: Message, _: list[int]) -> Message:
        """Run the reference twice on the same inputs under different seeds: is it random?"""
        return {"differs": self._case.differs(self._set(int(str(message["id"]))))}

    def examine(self, message: Message, _: list[int]) -> Message:
        """Look for work that the task seems to ask for and does not need."""
        ids = message["ids"]
        assert isinstance(ids, list)
        return {"reasons": degenerate.examine(self._case, map(self._set, ids))}

    def statistic(self, message: Message, _: list[int]) -> Message:
        """Reduce outputs to the task's own statistic; ``runs`` of the reference, fresh seeds."""
        chosen = self._set(int(str(message["id"])))
        runs = self._case.statistics(chosen, int(str(message["runs"])))
        self._kept.append(runs)
        return {"runs": describe(runs)}

    def reduce(self, message: Message, fds: list[int]) -> Message:
        """Reduce a candidate's outputs, handed over by the judge, to the task's statistic."""
        arena = Arena(fds[0])
        described = message["leaves"]
        assert isinstance(described, list)
        outputs = unflatten(message["tree"], [arena.tensor(leaf) for leaf in described])
        row = self._case.reduce(outputs)
        self._kept.append(row)
        return {"row": describe(row)}

    def release(self, message: Message, _: list[int]) -> Message:
        """Forget input sets and answers that the judge has read."""
        keep = message["keep"]
        assert isinstance(keep, list)
        self._sets = {i: each for i, each in self._sets.items() if i in keep}
        del self._kept[1:]
        return {}

    def verbs(self) -> dict[str, Verb]:
        """What the judge may ask for."""
        return {
            "open": self.open,
            "workload": self.workload,
            "weights": self.weights,
            "inputs": self.inputs,
            "answers": self.answers,
            "shifted": self.shifted,
            "repeat": self.repeat,
            "examine": self.examine,
            "statistic": self.statistic,
            "reduce": self.reduce,
            "release": self.release,
        }

    def _set(self, which: int) -> InputSet:
        return self._sets[which]

    def _state(self) -> list[object]:
        model = self._case.model
        return [[k, describe(t)] for k, t in model.state_dict().items()] if model else []


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer the judge until it hangs up."""
    del fds
    answer(control, Reference().verbs())


def answer(control: socket.socket, verbs: Mapping[str, Verb]) -> None:
    """Turn each message into a reply, whatever happens."""
    while True:
        message, passed = receive(control)
        try:
            reply = verbs[str(message["do"])](message, passed)
        except Misplaced as error:
            reply = {"misplaced": str(error)}
        except BaseException as error:  # a task's source may raise anything; the judge says so
            lines = traceback.format_exception_only(error)
            where = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
            at = f" (line {where[-1].lineno} of the task)" if where else ""
            reply = {"error": "".join(lines).strip()[-2000:] + at}
        send(control, reply)
