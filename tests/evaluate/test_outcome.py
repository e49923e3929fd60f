"""Examining launches: what counts as right besides the budget that eager's error gives."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.checks.answer import Answer
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.outcome import Examiner, Trial, check_form
from kernelsmith.evaluate.tensors import Spec, Tensor
from kernelsmith.evaluate.values import Answers, InputSet, Launches

Function = Callable[[torch.Tensor], torch.Tensor]


def carried(tensor: torch.Tensor) -> Tensor:
    return Tensor(str(tensor.dtype).removeprefix("torch."), tensor.contiguous().numpy())


class OneOutput:
    """A lane that has returned one tensor in memory of its own and touched nothing else."""

    def __init__(self, found: torch.Tensor) -> None:
        self._found = carried(found)

    def outputs(self, launches, index):
        return [self._found]

    def input_at(self, address):
        return None

    def changed_inputs(self, slot):
        return []

    def guards_intact(self):
        return True


def examined(
    function: Function, found: torch.Tensor, x: torch.Tensor, *, slack: float = 1.0, **task: object
) -> None:
    """Hold ``found`` against ``function(x)`` as the judge does."""

    def shifted(_: InputSet) -> list[list[Tensor]]:
        noises = [torch.rand(x.shape, dtype=torch.float64) * 2 - 1 for _ in range(4)]
        return [[carried(function(x.double() * (1 + 2.0**-18 * noise)))] for noise in noises]

    answer = Answer(path="out", exact=carried(function(x.double())), eager=carried(function(x)))
    tree = {"t": 0}
    trial = Trial(
        inputs=InputSet(id=0, tree=[tree], keywords=False, leaves=(), paths=()),
        answers=Answers(
            tree=tree, outputs=(answer,), aliases=(None,), mutated=(), buffers=(), exact=True
        ),
    )
    spec = Spec(dtype=carried(found).dtype, shape=tuple(found.shape), strides=tuple(found.stride()))
    launches = Launches(
        elapsed_us=1.0, waited_us=0.0, tree=tree, specs=(spec,), addresses=((4096,),)
    )
    examiner = Examiner(Task(name="t", source="", **task), [trial], slack=slack, shifted=shifted)  # type: ignore[arg-type]
    examiner.examine(OneOutput(found), launches, index=0, slot=0, trial=trial)  # type: ignore[arg-type]


def chain(x: torch.Tensor) -> torch.Tensor:
    """Sum rows one element after the other, in float32."""
    return torch.from_numpy(np.cumsum(x.numpy(), axis=-1, dtype=np.float32)[..., -1:].copy())


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def chained_softmax(x: torch.Tensor) -> torch.Tensor:
    shifted = torch.exp(x - x.amax(-1, keepdim=True))
    return shifted / chain(shifted)


def tf32(x: torch.Tensor) -> torch.Tensor:
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


@pytest.fixture(autouse=True)
def _same_numbers_every_time():
    torch.manual_seed(0)


def test_a_softmax_over_thousands_summed_in_one_chain_is_right():
    x = torch.randn(512, 4096)
    examined(softmax, chained_softmax(x), x)


def test_a_mean_that_cancels_may_be_off_by_what_its_cancelling_makes_of_rounding():
    for _ in range(200):
        x = torch.randn(64, 256)
        examined(torch.mean, chain(chain(x).T)[0, 0] / x.numel(), x)


@pytest.mark.parametrize("function", [softmax, lambda x: x @ x.T, lambda x: x - x.mean(-1, True)])
def test_inputs_rounded_to_tf32_are_refused_however_the_task_magnifies_them(function):
    x = torch.randn(128, 512)
    with pytest.raises(ProgramFailed, match="the worst row is off"):
        examined(function, function(tf32(x)), x)
    with pytest.raises(ProgramFailed, match="the worst row is off"):
        examined(function, function(tf32(x)), x, slack=2.0)


def test_what_computes_in_the_precision_that_the_task_allows_meets_no_tighter_tolerance():
    weight = torch.randn(256, 96)
    x = torch.randn(64, 256)

    def product(x: torch.Tensor) -> torch.Tensor:
        return x @ weight.to(x.dtype)

    low = x.bfloat16().float() @ weight.bfloat16().float()
    examined(product, low, x, compute_dtype="bfloat16")
    with pytest.raises(ProgramFailed):
        examined(product, low, x)
    with pytest.raises(ProgramFailed):
        examined(product, low * 1.2, x, compute_dtype="bfloat16")


@pytest.mark.parametrize(
    ("shape", "strides", "its", "said"),
    [
        ((2, 1, 3), (6, 6, 1), (6, 99, 1), ""),
        ((2, 1, 3), (6, 6, 1), (3, 99, 1), ""),
        ((2, 1, 3), (6, 6, 1), (8, 6, 1), "gappy strides"),
        ((2, 2, 3), (12, 6, 1), (12, 4, 1), "gappy strides"),
    ],
)
def test_only_strides_that_lead_somewhere_are_compared(shape, strides, its, said):
    eager = np.lib.stride_tricks.as_strided(
        np.zeros(40, np.float32), shape, [4 * s for s in strides]
    )
    answer = Answer(path="out", exact=Tensor("float64", eager.astype(np.float64)),
                    eager=Tensor("float32", eager))  # fmt: skip
    answers = Answers(
        tree={"t": 0}, outputs=(answer,), aliases=(None,), mutated=(), buffers=(), exact=True
    )
    launches = Launches(
        tree={"t": 0}, specs=(Spec(dtype="float32", shape=shape, strides=its),), addresses=((1,),),
        elapsed_us=1.0, waited_us=0.0,
    )  # fmt: skip
    if not said:
        check_form(launches, answers)
        return
    with pytest.raises(ProgramFailed, match=said):
        check_form(launches, answers)
