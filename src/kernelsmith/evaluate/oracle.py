"""The reference in a process of its own: the judge asks, it answers, candidates never see it."""

from collections.abc import Sequence
from typing import Any

from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.evaluate.arena import Arena
from kernelsmith.evaluate.checks.answer import Answer
from kernelsmith.evaluate.sandbox.errors import ChildBroken, ChildDied, ChildTimedOut
from kernelsmith.evaluate.sandbox.process import Child
from kernelsmith.evaluate.tensors import Float64, Spec, Tensor
from kernelsmith.evaluate.values import Answers, Found, InputSet, Leaf, Setup, State

_PATIENCE_S = 300.0
"""How long a reference may take over one request."""


class Oracle:
    """Right answers for one task. Its process holds the reference and nothing of a candidate."""

    def __init__(self, child: Child, task: Task, *, threads: int) -> None:
        self._child, self._task = child, task
        reply = self._ask(
            {
                "do": "open",
                "source": task.source,
                "entry": task.entry,
                "training": task.training,
                "threads": threads,
            }
        )
        if missing := reply["missing"]:
            raise UsageError(
                f"task {task.name!r} is not a KernelBench file: it defines no {', '.join(missing)}"
            )
        self.workloads = reply["workloads"]
        self.has_statistic: bool = bool(reply["statistic"])
        self.torch_version = str(reply["torch"])

    @property
    def is_beside(self) -> bool:
        """A processor's memory is its own program's."""
        return False

    def workload(self, workload: Workload, seed: int) -> Setup:
        """Construct the reference for a workload, with weights drawn from ``seed``."""
        reply = self._ask(
            {
                "do": "workload",
                "arguments": dict(workload.arguments),
                "init": dict(workload.init),
                "dtype": workload.dtype,
                "seed": seed,
                "randomise": self._task.weights is not Weights.SEED,
            }
        )
        return Setup(
            init=reply["init"],
            keywords=bool(reply["keywords"]),
            leaves=tuple(self._host_leaf(each) for each in reply["leaves"]),
            state=self._state(reply["state"]),
            seed=seed,
            dtype=workload.dtype,
            training=self._task.training,
        )

    def weights(self, seed: int, *, few: bool = False) -> State:
        """Draw new weights, or only a few elements of each."""
        return self._state(self._ask({"do": "weights", "seed": seed, "few": few})["state"])

    def inputs(self, seeds: Sequence[int], variant: str = "plain") -> list[InputSet] | None:
        """Draw one set per seed; ``None`` where the variant does not apply."""
        reply = self._ask({"do": "inputs", "seeds": list(seeds), "variant": variant})
        if reply.get("inapplicable"):
            return None
        return [
            InputSet(
                id=each["id"],
                tree=each["tree"],
                keywords=each["keywords"],
                leaves=tuple(self._leaf(leaf) for leaf in each["leaves"]),
                paths=tuple(each["paths"]),
            )
            for each in reply["sets"]
        ]

    def answers(
        self, sets: Sequence[InputSet], *, nudges: int = 4, before: Sequence[InputSet] = ()
    ) -> list[Answers]:
        """Say what is right for each set, if those before were launched first."""
        asked: dict[str, object] = {
            "do": "answers", "ids": [each.id for each in sets], "nudges": nudges,
            "before": [each.id for each in before],
        }  # fmt: skip
        return [self._answers(each) for each in self._ask(asked)["answers"]]

    def shifted(self, chosen: InputSet, runs: int = 4) -> list[list[Tensor]]:
        """Outputs in float64 on inputs that carry 18 bits, one list a run."""
        said = self._ask({"do": "shifted", "id": chosen.id, "runs": runs})["runs"]
        return [[self._tensor(each) for each in run] for run in said]

    def is_random(self, chosen: InputSet) -> bool:
        """Whether the reference gives other answers under another seed."""
        return bool(self._ask({"do": "repeat", "id": chosen.id})["differs"])

    def degenerate(self, sets: Sequence[InputSet]) -> list[str]:
        """In what way the task asks for less than it seems to; empty if it does not."""
        return list(self._ask({"do": "examine", "ids": [each.id for each in sets]})["reasons"])

    def statistics(self, chosen: InputSet, runs: int) -> Float64:
        """The task's own statistic over fresh runs of the reference, one row a run."""
        reply = self._ask({"do": "statistic", "id": chosen.id, "runs": runs})
        return self._leaf(reply["runs"]).tensor.float64()

    def reduce(self, tree: object, outputs: Sequence[Found]) -> Float64:
        """The task's own statistic of a candidate's outputs."""
        tensors = [each for each in outputs if isinstance(each, Tensor)]
        with Arena.of_tensors(tensors) as arena:
            reply = self._ask(
                {"do": "reduce", "tree": tree, "leaves": arena.layout[0]}, fds=[arena.fd]
            )
            return self._leaf(reply["row"]).tensor.float64()

    def release(self, keep: Sequence[InputSet] = ()) -> None:
        """Let the process forget all sets but those to keep, and all answers read so far."""
        self._ask({"do": "release", "keep": [each.id for each in keep]})

    def close(self) -> None:
        """End the process."""
        self._child.kill()

    def _ask(self, message: dict[str, object], fds: Sequence[int] = ()) -> dict[str, Any]:
        try:
            reply = self._child.call(message, timeout_s=_PATIENCE_S, fds=fds)
        except ChildTimedOut as error:
            raise UsageError(
                f"the reference of task {self._task.name!r} took more than {_PATIENCE_S:.0f} s"
            ) from error
        except ChildDied as error:
            raise EvaluationLost(f"the reference's process ended: {error}") from error
        except ChildBroken as error:
            raise EvaluationLost(f"the reference's process answered nonsense: {error}") from error
        if "error" in reply:
            raise UsageError(f"the reference of task {self._task.name!r} fails: {reply['error']}")
        return reply

    def _leaf(self, described: dict[str, Any]) -> Leaf:
        return self._host_leaf(described)

    def _host_leaf(self, described: dict[str, Any]) -> Leaf:
        if "layout" in described:
            raise UsageError(
                f"task {self._task.name!r} uses a {described['layout']} tensor; "
                "only plain dense tensors can be judged"
            )
        spec = spec_of(described)
        return Leaf(spec, self._child.read(described["address"], spec.span_bytes))

    def _tensor(self, described: dict[str, Any]) -> Tensor:
        return self._leaf(described).tensor

    def _state(self, described: list[tuple[str, dict[str, Any]]]) -> State:
        return State(
            keys=tuple(key for key, _ in described),
            leaves=tuple(self._leaf(leaf) for _, leaf in described),
        )

    def _answers(self, said: dict[str, Any]) -> Answers:
        return Answers(
            tree=said["tree"],
            outputs=tuple(self._answer(each) for each in said["outputs"]),
            aliases=tuple(each["aliases"] for each in said["outputs"]),
            kept=tuple(bool(each["kept"]) for each in said["outputs"]),
            mutated=tuple((leaf, self._answer(each)) for leaf, each in said["mutated"]),
            buffers=tuple((key, self._answer(each)) for key, each in said["buffers"]),
            exact=bool(said["exact"]),
        )

    def _answer(self, said: dict[str, Any]) -> Answer:
        return Answer(
            path=said["path"],
            eager=self._tensor(said["eager"]),
            exact=self._tensor(said["exact"]),
            alternatives=tuple(self._tensor(other) for other in said["alternatives"]),
            scores=self._tensor(said["scores"]).float64() if said["scores"] else None,
            dim=said["dim"],
        )


def spec_of(described: dict[str, Any]) -> Spec:
    """Read a tensor's description as a process gave it."""
    return Spec(
        dtype=str(described["dtype"]),
        shape=tuple(int(n) for n in described["shape"]),
        strides=tuple(int(n) for n in described["strides"]),
    )
