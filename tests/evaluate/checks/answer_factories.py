"""Small factories: answers and verdicts from torch tensors, as a judge would see them."""

from collections.abc import Callable

import numpy as np
import torch

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Measured, Mismatch
from kernelsmith.evaluate.checks.output import check_output, eager_error
from kernelsmith.evaluate.tensors import Tensor

Function = Callable[..., torch.Tensor]


def carried(tensor: torch.Tensor) -> Tensor:
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.contiguous()
    values = tensor.view(torch.uint16) if name == "bfloat16" else tensor
    return Tensor(name, values.numpy())


def as_float64(values: object) -> Tensor:
    return Tensor("float64", np.asarray(values, dtype=np.float64))


def as_float32(values: object) -> Tensor:
    return Tensor("float32", np.asarray(values, dtype=np.float32))


def an_answer(exact: object, **changes: object) -> Answer:
    """A float32 answer whose eager side is the exact one, rounded."""
    usual = {"path": "out", "exact": as_float64(exact), "eager": as_float32(exact)}
    return Answer(**{**usual, **changes})  # type: ignore[arg-type]


def answered(function: Function, *inputs: torch.Tensor) -> Answer:
    exact = function(*(each.double() if each.is_floating_point() else each for each in inputs))
    return Answer(path="out", exact=carried(exact), eager=carried(function(*inputs)))


def judged(
    found: Tensor, answer: Answer, *, compute: str = "float32", tolerance: Tolerance | None = None
) -> Measured | Mismatch:
    budget = Budget(eager_error=eager_error(answer), compute_dtype=compute)
    return check_output(found, answer, budget=budget, tolerance=tolerance or Tolerance())


def refused(found: Tensor, answer: Answer, **changes: object) -> Mismatch:
    result = judged(found, answer, **changes)  # type: ignore[arg-type]
    assert isinstance(result, Mismatch), f"accepted: {result}"
    return result


def accepted(found: Tensor, answer: Answer, **changes: object) -> Measured:
    result = judged(found, answer, **changes)  # type: ignore[arg-type]
    assert isinstance(result, Measured), result.message
    return result
