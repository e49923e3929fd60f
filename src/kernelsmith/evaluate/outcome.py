"""Whether one launch did what the reference does: outputs, inputs, buffers, memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Tolerance
from kernelsmith.evaluate.backend import Lane
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.norm import distance
from kernelsmith.evaluate.checks.output import check_output, eager_error
from kernelsmith.evaluate.cuda.answer import DeviceAnswer, Placed
from kernelsmith.evaluate.failure import ProgramFailed, TooFarOff
from kernelsmith.evaluate.tensors import EPSILON, Spec, Tensor
from kernelsmith.evaluate.values import Answers, Expected, Found, InputSet, Launches

_FLOOR_ULPS = {"float64": 16.0, "float32": 16.0, "float16": 4.0, "bfloat16": 4.0}
"""A plain sequential float32 sum over 8,192 terms is off by 12 ulp in our norm; half precision
rounds so coarsely that 4 hold all of it (``docs/correctness.md``)."""
_MOST_ULPS = 4096.0
"""However ill-conditioned a task is, float32 means at least eleven bits of a row."""
_K = 10.0
"""How many times eager's own error a candidate may be off."""
_BLIND_FLOOR_ULPS = 256.0
"""Where no precision above the task's own can be had, order of summation alone moves this much."""


Shifted = Callable[[InputSet], Sequence[Sequence[Tensor]]]
"""Gives outputs in float64 on inputs that carry 18 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One input set with its answers, and how it was drawn."""

    inputs: InputSet
    answers: Answers
    variant: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The largest error seen, with what was allowed and what eager shows."""

    error: float = 0.0
    budget: float = 0.0
    eager_error: float = 0.0
    path: str = ""
    """Of the output."""
    variant: str = "plain"
    """Of the inputs."""

    def or_else(self, other: "Worst") -> "Worst":
        """The one nearer to (or further beyond) its budget."""
        mine = self.error / self.budget if self.budget else 0.0
        theirs = other.error / other.budget if other.budget else 0.0
        return other if theirs >= mine else self


class Examiner:
    """Holds launches against trials; the budget of an output is eager's worst over the trials.

    Args:
        task: Says what precision is asked for.
        trials: What launches are held against.
        eager: Eager's worst errors so far, by output; those of the trials are added to it.
        slack: Multiplies the budget.
        shifted: Gives the outputs in float64 on inputs that carry 18 bits; asked where an error
            exceeds the budget. A plain chain of float32 additions (softmax over thousands, a mean
            that cancels) errs more than ten times as much as eager and no more than such inputs
            would; inputs rounded to TF32 or less err 64 times as much on any task.
    """

    def __init__(
        self,
        task: Task,
        trials: Sequence[Trial],
        *,
        eager: dict[str, float] | None = None,
        slack: float = 1.0,
        shifted: Shifted | None = None,
    ) -> None:
        self._task, self._trials, self._slack, self._shifted = task, trials, slack, shifted
        self._eager = {} if eager is None else eager
        for trial in trials:
            if trial.variant == "plain":
                for answer in _all(trial.answers):
                    known = self._eager.get(answer.path, 0.0)
                    self._eager[answer.path] = max(known, error_of_eager(answer))

    def examine(
        self, lane: Lane, launches: Launches, *, index: int, slot: int, trial: Trial
    ) -> Worst:
        """Check launch ``index`` of a batch, which ran on ``slot``.

        Raises:
            ProgramFailed: Something is wrong; the message says what, where and by how much.
        """
        answers, where = trial.answers, _where(trial)
        # Before a byte is read: a false shape or stride would have the judge copy gigabytes.
        check_form(launches, answers, where)
        for position in range(len(answers.outputs)):
            self._check_place(lane, launches, index, position, answers, where)
        worst = Worst()
        found = lane.outputs(launches, index)
        for position, answer in enumerate(answers.outputs):
            worst = worst.or_else(self._check(found[position], answer, trial, where, position))
        changed = set(lane.changed_inputs(slot))
        for leaf, answer in answers.mutated:
            changed.discard(leaf)
            now = lane.input_now(slot, leaf)
            worst = worst.or_else(self._check(now, answer, trial, where))
        if changed:
            names = ", ".join(trial.inputs.paths[leaf] for leaf in sorted(changed))
            raise _wrong(f"{names} was changed; the reference leaves its inputs alone{where}")
        if not lane.guards_intact():
            raise _wrong(f"writes outside of its inputs (guard bytes were changed){where}")
        return worst

    def examine_buffers(self, lane: Lane, trial: Trial) -> Worst:
        """Check buffers that the reference changes; call after the launch was released."""
        worst = Worst()
        for key, answer in trial.answers.buffers:
            worst = worst.or_else(
                self._check(lane.buffer(key, answer.eager), answer, trial, _where(trial))
            )
        return worst

    def _check(
        self, found: Found | str, answer: Expected, trial: Trial, where: str,
        position: int | None = None,
    ) -> Worst:  # fmt: skip
        if isinstance(found, str):
            raise _wrong(f"{answer.path} is {found}{where}")
        budget = self._budget(answer, trial)
        said = self._held(found, answer, trial, budget)
        if isinstance(said, Mismatch) and said.kind is Kind.ERROR and position is not None:
            budget = self._wider(budget, answer, trial, position)
            said = self._held(found, answer, trial, budget)
        if isinstance(said, Mismatch) and said.kind is Kind.ERROR:
            raise TooFarOff(f"{said.message}{where}")
        if isinstance(said, Mismatch):
            raise _wrong(f"{said.message}{where}")
        return Worst(
            error=said.error, budget=budget.allowed, eager_error=said.eager_error,
            path=answer.path, variant=trial.variant,
        )  # fmt: skip

    def _held(
        self, found: Found, answer: Expected, trial: Trial, budget: Budget
    ) -> Mismatch | Measured:
        tolerance = self._tolerance(answer, budget)
        if isinstance(answer, DeviceAnswer):
            assert isinstance(found, Placed)
            return answer.check(found, budget=budget, tolerance=tolerance)
        assert isinstance(found, Tensor)
        others = [
            other.eager
            for each in self._trials
            if each.inputs is not trial.inputs
            for other in each.answers.outputs
            if other.path == answer.path and isinstance(other, Answer)
        ]
        return check_output(found, answer, budget=budget, tolerance=tolerance, others=others)

    def _budget(self, answer: Expected, trial: Trial) -> Budget:
        dtype = answer.eager.dtype if answer.eager.is_float else "float32"
        allowed = self._task.compute_dtype
        compute = max((dtype, allowed or dtype), key=lambda each: EPSILON.get(each, 0.0))
        blind = not trial.answers.exact or dtype == "float64"
        # Plain trials' own errors are among the known ones; only a variant adds its own.
        known = self._eager.get(answer.path, 0.0)
        own = 0.0 if trial.variant == "plain" else error_of_eager(answer)
        return Budget(
            eager_error=max(known, own),
            compute_dtype=compute,
            k=_K * self._slack,
            floor_ulps=(_BLIND_FLOOR_ULPS if blind else _FLOOR_ULPS[compute]) * self._slack,
        )

    def _wider(self, budget: Budget, answer: Expected, trial: Trial, position: int) -> Budget:
        """The budget, or what the task makes of inputs that carry 18 bits if that is more."""
        if self._shifted is None or not trial.answers.exact or budget.compute_dtype != "float32":
            return budget
        ulps = magnified(self._shifted, trial, answer, position) / EPSILON["float32"] * self._slack
        return replace(budget, floor_ulps=max(budget.floor_ulps, ulps))

    def _tolerance(self, answer: Expected, budget: Budget) -> Tolerance:
        """The task's own; where it lets one compute in less precision, never less than that."""
        tolerance, compute = self._task.tolerance, self._task.compute_dtype
        if not answer.eager.is_float or compute not in EPSILON:
            return tolerance
        if EPSILON[compute] <= EPSILON[answer.eager.dtype]:
            return tolerance
        return replace(tolerance, atol=max(tolerance.atol, budget.allowed * _scale(answer)))

    def _check_place(
        self, lane: Lane, launches: Launches, index: int, position: int, answers: Answers,
        where: str,
    ) -> None:  # fmt: skip
        """Outputs are memory of their own: not an input's, not another launch's."""
        spec = launches.specs[position]
        path = answers.outputs[position].path
        if not isinstance(spec, Spec):
            return
        addresses = launches.addresses[index]
        if position >= len(addresses) or spec.count == 0:
            return
        hit = lane.input_at(addresses[position])
        if hit is not None and answers.aliases[position] is None:
            raise _wrong(f"{path} is the memory of an input; the reference returns its own{where}")
        if hit is None and not any(answers.kept[position : position + 1]):
            same = [each[position : position + 1] for each in launches.addresses]
            if same.count((addresses[position],)) > 1:
                raise _wrong(
                    f"{path} of two launches is the same memory: a later call overwrites what an "
                    f"earlier one returned{where}"
                )


def magnified(shifted: Shifted, trial: Trial, answer: Expected, position: int) -> float:
    """What the task makes of inputs that carry 18 bits, as an error of one of its outputs."""
    if isinstance(answer, DeviceAnswer):
        errors = [answer.ruler.magnified()]
    else:
        runs = shifted(trial.inputs)
        errors = [distance(run[position], answer.exact, answer.eager).error for run in runs]
    return min(max(errors, default=0.0), _MOST_ULPS * EPSILON["float32"])


def check_form(launches: Launches, answers: Answers, where: str = "") -> None:
    """Results are built like the reference's, and each tensor has its dtype, shape and density."""
    if launches.tree != answers.tree:
        raise _wrong(
            f"returns {_form(launches.tree)} where the reference returns "
            f"{_form(answers.tree)}{where}"
        )
    for position, answer in enumerate(answers.outputs):
        if position >= len(launches.specs):
            raise _wrong(f"{answer.path} is missing{where}")
        spec = launches.specs[position]
        if not isinstance(spec, Spec):
            continue
        for what, got, wanted in (
            ("dtype", spec.dtype, answer.eager.dtype),
            ("shape", spec.shape, answer.eager.shape),
        ):
            if got != wanted:
                raise _wrong(f"{answer.path}: expected {what} {wanted}, found {got}{where}")
        # A stride along one element leads nowhere, and is whatever a library made of it.
        steps = zip(spec.shape, spec.strides, _strides(answer), strict=True)
        if not spec.is_dense and any(size != 1 and own != its for size, own, its in steps):
            raise _wrong(f"{answer.path} has overlapping or gappy strides {spec.strides}{where}")


def _all(answers: Answers) -> list[Expected]:
    inside = [answer for _, answer in answers.mutated] + [answer for _, answer in answers.buffers]
    return [*answers.outputs, *inside]


def _wrong(message: str) -> ProgramFailed:
    return ProgramFailed(Verdict.WRONG, message)


_VARIANTS: Mapping[str, str] = {
    "plain": "",
    "negative": " (inputs with random signs)",
    "wide": " (inputs over four orders of magnitude)",
    "speckled": " (inputs with a few values of either sign anywhere)",
    "dotted": " (inputs with hardly any values of either sign anywhere)",
    "extreme": " (inputs with zeros, huge and tiny values)",
    "strided": " (inputs that are not contiguous)",
    "one": " (a batch of one)",
    "empty": " (an empty batch)",
}


def _where(trial: Trial) -> str:
    return _VARIANTS[trial.variant]


def _form(tree: object) -> str:
    """A result's structure in words: ``a tensor``, ``a tuple of 2``."""
    if isinstance(tree, list):
        return f"a list of {len(tree)}"
    if not isinstance(tree, dict) or len(tree) != 1:
        return repr(tree)[:200]
    ((tag, body),) = tree.items()
    named = {"t": "a tensor", "()": f"a tuple of {len(body) if isinstance(body, list) else '?'}"}
    return named.get(tag, f"a dict of {len(body) if isinstance(body, list) else '?'}")


def _strides(answer: Expected) -> tuple[int, ...]:
    if isinstance(answer, DeviceAnswer):
        return answer.eager.strides
    values = answer.eager.values
    return tuple(step // values.itemsize for step in values.strides)


def error_of_eager(answer: Expected) -> float:
    """How far off eager is in the trusted process, wherever its values lie."""
    return answer.eager_error if isinstance(answer, DeviceAnswer) else eager_error(answer)


def _scale(answer: Expected) -> float:
    if isinstance(answer, DeviceAnswer):
        return answer.scale
    exact = answer.exact.float64()
    exact = exact[np.isfinite(exact)]
    return float(np.sqrt(np.square(exact).mean())) if exact.size else 0.0
