"""Whether one output is right, whatever its dtype."""

from collections.abc import Sequence

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.discrete import check_discrete
from kernelsmith.evaluate.checks.floats import check_float
from kernelsmith.evaluate.checks.indices import check_indices
from kernelsmith.evaluate.checks.norm import distance
from kernelsmith.evaluate.tensors import Tensor


def eager_error(answer: Answer) -> float:
    """Return how far eager itself is from float64; 0 for integers and bools."""
    if not answer.eager.is_float:
        return 0.0
    return distance(answer.eager, answer.exact, answer.eager).error


def check_output(
    found: Tensor,
    answer: Answer,
    *,
    budget: Budget,
    tolerance: Tolerance,
    others: Sequence[Tensor] = (),
) -> Mismatch | Measured:
    """Hold one output of a candidate against the reference's.

    ``others`` are answers of the same output to other inputs: they sharpen the message of a
    candidate that repeats itself, never the verdict.
    """
    if found.dtype != answer.eager.dtype:
        return Mismatch(
            path=answer.path,
            kind=Kind.DTYPE,
            message=f"{answer.path}: expected dtype {answer.eager.dtype}, found {found.dtype}",
        )
    if found.shape != answer.eager.shape:
        return Mismatch(
            path=answer.path,
            kind=Kind.SHAPE,
            message=f"{answer.path}: expected shape {answer.eager.shape}, found {found.shape}",
        )
    if found.is_float:
        return check_float(found, answer, budget=budget, tolerance=tolerance, others=tuple(others))
    if answer.scores is not None:
        return check_indices(found, answer, budget=budget)
    return check_discrete(found, answer)
