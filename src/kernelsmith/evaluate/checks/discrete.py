"""Whether an integer or bool output is right: equal, save where the reference is in doubt."""

import numpy as np

from kernelsmith.evaluate.checks.answer import Answer, Kind, Measured, Mismatch
from kernelsmith.evaluate.tensors import Tensor


def check_discrete(found: Tensor, answer: Answer) -> Mismatch | Measured:
    """Accept each element that float64, eager or an alternative answers."""
    known = (answer.exact, answer.eager, *answer.alternatives)
    right = np.zeros(found.shape, dtype=np.bool_)
    for each in known:
        right |= found.values == each.values
    if right.all():
        return Measured(path=answer.path, error=0.0, eager_error=0.0)
    kind = Kind.BOOL if found.dtype == "bool" else Kind.INTEGER
    where = tuple(int(i) for i in np.unravel_index(np.argmin(right), right.shape))
    wrong = int(right.size - right.sum())
    message = (
        f"{answer.path} at {where}: expected {answer.exact.values[where]}, "
        f"found {found.values[where]}; {wrong:,} of {right.size:,} elements differ"
    )
    return Mismatch(path=answer.path, kind=kind, message=message + _hint(found, answer))


def _hint(found: Tensor, answer: Answer) -> str:
    values = found.values.reshape(-1)
    if values.size > 1 and (values == values[0]).all():
        return f"\nhint: every element found is {values[0]}"
    if found.dtype != "bool":
        apart = found.values.astype(np.int64) - answer.exact.values.astype(np.int64)
        if (apart == apart.reshape(-1)[0]).all():
            return f"\nhint: every element is off by {apart.reshape(-1)[0]}"
    elif (found.values != answer.exact.values).all():
        return "\nhint: every element is negated"
    return ""
