"""Whether a candidate of a drawn task is right by the judge's own norm, on drawn inputs."""

import random

import numpy as np
import torch
from drawn_inputs import Drawn

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Mismatch
from kernelsmith.evaluate.checks.output import check_output, eager_error
from kernelsmith.evaluate.tensors import Tensor
from kernelsmith.evaluate.worker.program import execute

_LOOSE = Tolerance(atol=1e30, rtol=1e30)
"""Leaves everything to the error budget."""
_TRIALS = 16


def mismatches(drawn: Drawn, source: str, rng: random.Random) -> list[str]:
    """What the judge would refuse, with the inputs' shapes; the reference's ``forward`` is barred.

    Eager's worst error over the trials of a dtype is the budget's measure, as in the judge, times
    three: outputs of a few elements, as drawn here, have no row in which one of them is small.
    """
    dtype = rng.choice(["float32", "float32", "float32", "bfloat16", "float16"])
    kind = getattr(torch, dtype) if drawn.halves else torch.float32
    model, made = _models(drawn, source, rng.randrange(1000), kind)
    trials = []
    for _ in range(_TRIALS):
        given = [each.to(kind) if each.is_floating_point() else each for each in drawn.inputs(rng)]
        before = [each.clone() for each in given]
        with torch.no_grad():
            found, eager = _listed(made(*given)), _listed(model(*given))
            wide = [each.double() if each.is_floating_point() else each for each in given]
            exact = _listed(model.double()(*wide))
            model.to(kind)
        trials.append((given, found, [
            Answer(path=f"out[{at}]", exact=_tensor(x), eager=_tensor(e))
            for at, (x, e) in enumerate(zip(exact, eager, strict=True))
        ]))  # fmt: skip
        assert all(torch.equal(a.nan_to_num(9), b.nan_to_num(9))
                   for a, b in zip(before, given, strict=True)), "inputs changed"  # fmt: skip
    errors = [
        e for *_, answers in trials for each in answers if np.isfinite(e := eager_error(each))
    ]
    budget = Budget(
        eager_error=max(errors), compute_dtype=str(kind).removeprefix("torch."), k=30.0,
        floor_ulps=24.0,
    )  # fmt: skip
    wrong = []
    for given, found, answers in trials:
        for one, answer in zip(found, answers, strict=True):
            said = check_output(_tensor(one), answer, budget=budget, tolerance=_LOOSE)
            if isinstance(said, Mismatch):
                shapes = [(tuple(each.shape), each.stride()) for each in given]
                wrong.append(f"{kind} {shapes}: {said.message}")
    return wrong


def _models(drawn: Drawn, source: str, seed: int, kind: torch.dtype):  # type: ignore[no-untyped-def]
    torch.manual_seed(seed)
    model = execute(drawn.task.source).Model().eval()
    for each in model.state_dict().values():
        if each.is_floating_point() and each.dim() == 1:
            each.copy_(torch.rand_like(each) + 0.5)  # weights and statistics that do something
    made = execute(source).ModelNew().eval()
    made.load_state_dict(model.state_dict())
    if hasattr(made, "plain"):
        made.plain = _forbidden
    return model.to(kind), made.to(kind)


def _forbidden(*_: object) -> None:
    raise AssertionError("the reference was run in place of the kernel")


def _listed(value: object) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple | list) else [value]  # type: ignore[list-item]


def _tensor(value: torch.Tensor) -> Tensor:
    dtype = str(value.dtype).removeprefix("torch.")
    dense = value.contiguous()
    if dtype == "bfloat16":
        dense = dense.view(torch.uint16)
    return Tensor(dtype, dense.numpy())
