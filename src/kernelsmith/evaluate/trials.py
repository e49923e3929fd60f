"""Is it right? Fresh inputs from secret seeds, through the same path that is timed later."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from kernelsmith.domain.evaluation import Accuracy, Verdict
from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import Lane, Oracle
from kernelsmith.evaluate.checks.indices import infer_scores
from kernelsmith.evaluate.checks.randomness import alarm_threshold, runs_needed, worst_z
from kernelsmith.evaluate.cuda.answer import DeviceAnswer
from kernelsmith.evaluate.failure import ProgramFailed, lacks_memory
from kernelsmith.evaluate.outcome import Examiner, Trial, Worst, check_form, magnified
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.values import Answers, Expected, Found, InputSet, Launches, State

Draw = Callable[[], int]
"""Draws a secret seed."""

_ASKED = 3
"""Input sets on which it is asked how much a task magnifies rounding."""
_RENEWED_SLACK = 2.0
"""Precision was judged before; after a change of weights what is looked for is the old answer."""
_SIMPLEST_FIRST = (
    "plain", "negative", "speckled", "dotted", "wide", "strided", "one", "empty", "extreme",
)  # fmt: skip
_RANK = {variant: rank for rank, variant in enumerate(_SIMPLEST_FIRST)}


def draw_trials(oracle: Oracle, task: Task, settings: Settings, draw: Draw) -> list[Trial]:
    """Make the trials of the current workload: plain ones, and ranges the task did not think of.

    Raises:
        UsageError: What the reference returns has another form for every input.
    """
    trials = _trials(oracle, "plain", [draw() for _ in range(settings.trials)])
    assert trials is not None
    _refuse_shifting(task, trials)
    if not task.structure:
        for variant in ("negative", "wide", "speckled", "dotted"):
            more = _trials(oracle, variant, [draw()])
            # A range on which the reference itself breaks down tests nobody.
            if more and all(trial.answers.is_finite for trial in more):
                trials += more
    return trials


def _refuse_shifting(task: Task, trials: list[Trial]) -> None:
    """Refuse tasks whose results change shape with the values: one batch has one form here."""
    forms = {
        f"{trial.answers.tree} {[answer.eager.shape for answer in trial.answers.outputs]}"
        for trial in trials
    }
    if len(forms) > 1:
        raise UsageError(
            f"the reference of task {task.name!r} returns other shapes, or other plain numbers, "
            "for other values of its inputs; return tensors whose shapes follow from the inputs'"
        )


def refuse_random(oracle: Oracle, task: Task, trial: Trial) -> bool:
    """Whether the reference is random; refuses the task if it brings nothing to judge that by."""
    if not oracle.is_random(trial.inputs):
        return False
    if not oracle.has_statistic:
        raise UsageError(
            f"the reference of task {task.name!r} is random: two runs on the same inputs differ; "
            "make it deterministic (eval mode, no dropout) or define statistic(outputs)"
        )
    return True


def check(
    lane: Lane, oracle: Oracle, task: Task, workload: Workload, trials: list[Trial], *,
    state: State, draw: Draw, rng: random.Random, elsewhere: Mapping[str, float],
) -> tuple[Accuracy, Worst]:  # fmt: skip
    """Run every trial on a loaded lane and hold it against the answers.

    ``elsewhere`` is how far off eager is, by output, in processes like the candidate's.

    Raises:
        ProgramFailed: Something is wrong.
    """
    eager = dict(elsewhere)
    examiner = Examiner(task, trials, eager=eager, shifted=oracle.shifted)
    again = replace(trials[0], inputs=trials[0].inputs)  # the same inputs twice: races show
    order = [*trials, again]
    rng.shuffle(order)
    if any(trial.answers.buffers for trial in trials):
        worst = _one_by_one(lane, examiner, order, state)
    else:
        worst = _together(lane, examiner, order)
    if task.weights is Weights.DYNAMIC and state.keys:
        try:
            # All weights, then a few elements: who looks at some of them must not get by either.
            for few in (False, True):
                state = oracle.weights(draw(), few=few)
                lane.weights(state, first=False)
                renewed = _trials(oracle, "plain", [draw()])
                assert renewed is not None
                examiner = Examiner(
                    task, renewed, eager=eager, slack=_RENEWED_SLACK, shifted=oracle.shifted
                )
                worst = worst.or_else(_together(lane, examiner, renewed))
        except ProgramFailed as failed:
            raise failed.said(
                f"{failed.message} (after the weights were changed in place: nothing derived from "
                "them may be kept, unless the task says weights: static)"
            ) from failed
    accuracy = Accuracy(
        workload=workload.name, error=worst.error, budget=worst.budget,
        eager_error=worst.eager_error, trials=len(order),
    )  # fmt: skip
    return accuracy, worst


def of_18_bits(oracle: Oracle, worst: Worst, draw: Draw) -> float:
    """The error that inputs of 18 bits alone bring to the output that was furthest off.

    On fresh inputs of the same variant. A recurrent layer that forgets nothing makes more of them
    than float32 is thought to lose.
    """
    found = 0.0
    for trial in _trials(oracle, worst.variant, [draw() for _ in range(_ASKED)]) or ():
        for position, answer in enumerate(trial.answers.outputs):
            if answer.path == worst.path and answer.eager.is_float and trial.answers.exact:
                found = max(found, magnified(oracle.shifted, trial, answer, position))
    return found


def check_statistic(lane: Lane, oracle: Oracle, workload: Workload, chosen: InputSet) -> Accuracy:
    """Compare distributions: the task's statistic over runs of either side on the same inputs."""
    runs = runs_needed(oracle.statistics(chosen, 2).shape[1])
    reference = oracle.statistics(chosen, runs)
    answers = oracle.answers([chosen], nudges=0)[0]
    lane.arrange([chosen] * runs)
    launches = lane.run(range(runs))
    rows = []
    for index in range(runs):
        tensors = plain_outputs(lane, launches, index, answers)
        rows.append(oracle.reduce(launches.tree, tensors))
    lane.release(launches)
    if any(row.shape != reference[0].shape for row in rows):
        raise ProgramFailed(Verdict.WRONG, "the statistic of its outputs has another shape")
    worst = worst_z(reference, np.stack(rows))
    allowed = alarm_threshold(reference.shape[1])
    if worst > allowed:
        raise ProgramFailed(
            Verdict.WRONG,
            f"its outputs follow another distribution: the task's statistic differs by "
            f"z = {worst:.1f} over {runs} runs, {allowed:.1f} is allowed",
        )
    return Accuracy(
        workload=workload.name, error=worst, budget=allowed, eager_error=0.0, trials=runs
    )


def plain_outputs(lane: Lane, launches: Launches, index: int, answers: Answers) -> list[Found]:
    """Read one launch's outputs once their form is known to be the reference's."""
    check_form(launches, answers)
    tensors = [each for each in lane.outputs(launches, index) if not isinstance(each, str)]
    if len(tensors) != len(answers.outputs):
        raise ProgramFailed(Verdict.WRONG, "an output is no plain tensor")
    return tensors


def _together(lane: Lane, examiner: Examiner, order: list[Trial]) -> Worst:
    """One batch for all, where there is room: the program sees nothing but launches."""
    worst = Worst()
    for batch in _batches(order, lane.room):
        lane.arrange([trial.inputs for trial in batch])
        launches = lane.run(range(len(batch)))
        # Launched in random order, examined plain inputs first: the simplest case is named.
        for slot, trial in sorted(enumerate(batch), key=lambda each: _RANK[each[1].variant]):
            worst = worst.or_else(
                examiner.examine(lane, launches, index=slot, slot=slot, trial=trial)
            )
        lane.release(launches)
    return worst


def _batches(order: list[Trial], room: int | None) -> list[list[Trial]]:
    """Cut into batches whose inputs and outputs fit; one launch alone always does."""
    batches: list[list[Trial]] = []
    size = 0
    for trial in order:
        needed = trial.inputs.nbytes + trial.answers.nbytes
        if not batches or (room is not None and size + needed > room):
            batches.append([])
            size = 0
        batches[-1].append(trial)
        size += needed
    return batches


def _one_by_one(lane: Lane, examiner: Examiner, order: list[Trial], state: State) -> Worst:
    """Where the forward changes buffers, each launch starts from the same ones."""
    worst = Worst()
    lane.arrange([trial.inputs for trial in order])
    for slot, trial in enumerate(order):
        lane.weights(state, first=False)
        launches = lane.run([slot])
        worst = worst.or_else(examiner.examine(lane, launches, index=0, slot=slot, trial=trial))
        lane.release(launches)
        worst = worst.or_else(examiner.examine_buffers(lane, trial))
    return worst


def _trials(oracle: Oracle, variant: str, seeds: list[int]) -> list[Trial] | None:
    sets = oracle.inputs(seeds, variant)
    if sets is None:
        return None
    try:
        answers = oracle.answers(sets)
    except UsageError as error:
        # Beside others there may be no memory for it: then all is judged again without them.
        if variant == "plain" or (oracle.is_beside and lacks_memory(str(error))):
            raise
        return None
    return [
        Trial(inputs=inputs, answers=with_scores(inputs, each), variant=variant)
        for inputs, each in zip(sets, answers, strict=True)
    ]


def with_scores(inputs: InputSet, answers: Answers) -> Answers:
    """Find out what integer outputs index, so that ties are judged by value."""
    outputs: list[Expected] = []
    tensors = [leaf.tensor for leaf in inputs.leaves if leaf.raw]
    for answer in answers.outputs:
        if isinstance(answer, DeviceAnswer):
            return answers  # found where the values are
        if answer.scores is None and answer.eager.dtype in ("int64", "int32"):
            found = infer_scores(answer, tensors)
            if found is not None:
                answer = replace(answer, scores=found[0], dim=found[1])
        outputs.append(answer)
    return replace(answers, outputs=tuple(outputs))


def robustness(
    lane: Lane, oracle: Oracle, task: Task, draw: Draw, *, elsewhere: Mapping[str, float]
) -> str | None:
    """Try what callers do later; the first failure in words, or nothing."""
    variants = ["strided", "one", "empty"] if task.structure else ["strided", "one", "empty",
                                                                  "extreme"]  # fmt: skip
    for variant in variants:
        trials = _trials(oracle, variant, [draw()])
        if not trials or not all(trial.answers.is_finite for trial in trials):
            continue
        try:
            examiner = Examiner(task, trials, eager=dict(elsewhere), shifted=oracle.shifted)
            _together(lane, examiner, trials)
        except ProgramFailed as failed:
            return f"{variant} inputs: {failed.verdict}: {failed.message}"
    return None
