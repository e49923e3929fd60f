"""How far off eager is in a process of its own, as the one that is timed.

The trusted process says what is right and how far off eager is there. A library may choose another
way in another process, most likely by the memory that it finds: TF32 in one, float32 in the other
(a convolution on an H200: 4e-4 and 8e-7). A candidate that is as exact as what it is timed against
is not wrong.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelsmith.domain.task import Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import Lane, Oracle
from kernelsmith.evaluate.checks.norm import distance
from kernelsmith.evaluate.checks.output import eager_error
from kernelsmith.evaluate.cuda.answer import DeviceAnswer, Placed
from kernelsmith.evaluate.failure import ProgramFailed
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
        """Run eager in a fresh process on fresh inputs; says whether it is off otherwise there."""
        try:
            setup = oracle.workload(workload, draw())
            sets = oracle.inputs([draw()])
            if sets is None:
                return False
            (answers,) = oracle.answers(sets)
            lane = open_eager(setup)
            try:
                lane.arrange(sets)
                launches = lane.run([0])
                found = plain_outputs(lane, launches, 0, answers)
                both = zip(answers.outputs, found, strict=True)
                off = {each.path: (_error(at, each), _trusted(each)) for each, at in both}
                lane.release(launches)
            finally:
                lane.close()
        except (ProgramFailed, UsageError):
            return False  # nobody knows: the next one may ask
        finally:
            oracle.release()
        otherwise = {
            path: there
            for path, (there, here) in off.items()
            if _OTHERWISE * here < there <= _FARTHEST
        }
        self._known[workload.name] = otherwise
        return bool(otherwise)


def _error(found: Found, answer: Expected) -> float:
    if not answer.eager.is_float:
        return 0.0
    if isinstance(answer, DeviceAnswer):
        assert isinstance(found, Placed)
        return answer.ruler.error(found)
    assert isinstance(found, Tensor)
    error = distance(found, answer.exact, answer.eager).error
    return error if math.isfinite(error) else 0.0


def _trusted(answer: Expected) -> float:
    return answer.eager_error if isinstance(answer, DeviceAnswer) else eager_error(answer)
