"""How far off eager is in a process of its own, as the one that is timed.

The trusted process says what is right and how far off eager is there. A library may choose another
way in another process, most likely by the memory that it finds: TF32 in one, float32 in the other
(a convolution on an H200: 4e-4 and 8e-7). A candidate that is as exact as what it is timed against
is not wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelsmith.domain.task import Workload
from kernelsmith.evaluate.backend import Lane, Oracle
from kernelsmith.evaluate.checks.norm import distance
from kernelsmith.evaluate.cuda.answer import DeviceAnswer, Placed
from kernelsmith.evaluate.outcome import error_of_eager
from kernelsmith.evaluate.tensors import Tensor
from kernelsmith.evaluate.trials import plain_outputs
from kernelsmith.evaluate.values import Expected, Found, Setup

_FARTHEST = 4e-3
"""Errors beyond this are none of TF32's, nor of anything else that eager does in float32."""
_OTHERWISE = 8.0
"""Times as far off as in the trusted process: another way to compute, not other numbers."""


@dataclass(slots=True)
class EagerElsewhere:
    """What is known of it, by workload; a judge keeps it for all candidates of a task."""

    _known: dict[str, Mapping[str, float]] = field(default_factory=dict)

    def errors(self, workload: Workload) -> dict[str, float]:
        """By output, where eager is off otherwise than in the trusted process."""
        return dict(self._known.get(workload.name, {}))

    def is_known(self, workload: Workload) -> bool:
        """Whether somebody has looked."""
        return workload.name in self._known

    def look(
        self, oracle: Oracle, workload: Workload, draw: Callable[[], int],
        open_eager: Callable[[Setup], Lane],
    ) -> bool:  # fmt: skip
        """Run eager in a fresh process on fresh inputs; says whether it is off otherwise there.

        Raises:
            ProgramFailed: It does not run there; nobody knows then, and the next one may ask.
            UsageError: Likewise.
        """
        try:
            setup = oracle.workload(workload, draw())
            sets = oracle.inputs([draw()])
            assert sets is not None, "plain inputs are what the task draws"
            (answers,) = oracle.answers(sets)
            lane = open_eager(setup)
            try:
                lane.arrange(sets)
                launches = lane.run([0])
                found = plain_outputs(lane, launches, 0, answers)
                both = zip(answers.outputs, found, strict=True)
                there = {each: _error(at, each) for each, at in both if each.eager.is_float}
                lane.release(launches)
            finally:
                lane.close()
        finally:
            oracle.release()
        otherwise = {
            each.path: error
            for each, error in there.items()
            if _OTHERWISE * error_of_eager(each) < error <= _FARTHEST
        }
        self._known[workload.name] = otherwise
        return bool(otherwise)


def _error(found: Found, answer: Expected) -> float:
    if isinstance(answer, DeviceAnswer):
        assert isinstance(found, Placed)
        return answer.ruler.error(found)
    assert isinstance(found, Tensor)
    return distance(found, answer.exact, answer.eager).error
