"""Where eager's convolutions are exact, what rounds is made exact first and then left alone."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from rule_briefs import Painted, a_brief, a_proposer, a_step, an_exemplar, painted, proposed
from rule_tasks import a_task

sys.path.insert(0, str(Path(__file__).parent / "convolutions"))
from test_convolution_replace import a_call

from kernelsmith.domain.evaluation import Coverage, Verdict
from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget
from kernelsmith.evaluate.checks.output import check_output
from kernelsmith.evaluate.tensors import Tensor
from kernelsmith.propose.header import header_of
from kernelsmith.propose.rules.compiled_families import reseeded
from kernelsmith.propose.rules.convolutions.replace import (
    convolution_parameters,
    convolution_seeds,
)
from kernelsmith.propose.rules.exactness import off_as_tf32
from kernelsmith.propose.rules.kinds import kinds_for
from kernelsmith.propose.rules.products.standalone import product_family
from kernelsmith.propose.rules.space import Parameter, Space

TASK = a_task(
    "return torch.relu(self.conv(x))", init="self.conv = nn.Conv2d(20, 19, 3, stride=2, padding=1)",
    inputs="torch.randn(2, 20, 9, 13)",
)  # fmt: skip
SEEN = (
    "out at (1, 2): expected 1, found 1.1; the worst row is off by {} where {} is allowed "
    "(eager: {}); 9 of 12 elements are far off"
)
ROUNDED = SEEN.format("0.00059", "4.12e-06", "4.12e-07")
ELSEWHERE = SEEN.format("0.3", "4.12e-06", "4.12e-07")


def wrongly(message, verdict=Verdict.WRONG):
    return an_exemplar(TASK, "x", verdict, message=message).evaluation


@pytest.mark.parametrize(("off", "allowed", "eager"), [
    ("0.00059", "4.12e-06", "4.12e-07"), ("2.62e-06", "1.91e-06", "4.57e-08"),
    ("1.61e-05", "1.91e-06", "3.97e-08"), ("0.0011", "1.37e-05", "1.37e-06"),
])  # fmt: skip
def test_what_an_h200_said_of_tf32_is_understood(off, allowed, eager):
    message = SEEN.format(off, allowed, eager)
    assert off_as_tf32(wrongly(message))
    assert off_as_tf32(wrongly(message + " (inputs with random signs)"))
    assert not off_as_tf32(wrongly(message, Verdict.CRASHED))


@pytest.mark.parametrize("message", [
    ELSEWHERE,
    SEEN.format("0.004", "0.0031", "0.00031"),
    SEEN.format("3e-06", "1.91e-06", "1.9e-07"),
    SEEN.format("nan", "1.91e-06", "4e-08"),
    "out at (0,): expected 1, found nan; 1 of 2 elements are NaN or infinite on one side only",
    "out: expected shape (2,), found (3,)",
])  # fmt: skip
def test_what_is_wrong_in_another_way_is_not_taken_for_it(message):
    assert not off_as_tf32(wrongly(message))


def test_the_judge_s_own_words_are_understood():
    exact = np.random.default_rng(0).standard_normal((8, 64))
    off = (exact * (1 + 3e-4)).astype(np.float32)
    answer = Answer(
        path="out", exact=Tensor("float64", exact),
        eager=Tensor("float32", exact.astype(np.float32)),
    )  # fmt: skip
    budget = Budget(eager_error=3e-8, compute_dtype="float32")
    said = check_output(Tensor("float32", off), answer, budget=budget, tolerance=Tolerance())
    assert off_as_tf32(wrongly(said.message))


@dataclass(frozen=True)
class Compiled:
    """The compiler's family as far as convolutions go: its text is its parameters."""

    name: str = "compiled"

    @property
    def space(self):
        call = a_call((2, 20, 9, 13), (19, 20, 3, 3), stride=2, padding=1)
        form = Parameter(name="form", choices=("folded", "written"), default="folded",
                         ordered=False, safe="written", why="algebra")  # fmt: skip
        made = Space(template=self.name, parameters=(form, *convolution_parameters(call)),
                     seeds=((), (("form", "written"),)))  # fmt: skip
        return reseeded(made, (), convolution_seeds(call))

    def source(self, chosen):
        listed = f"{self.name} {sorted(chosen.items())}"
        return f"{self.space.header(chosen)}\nclass ModelNew: ...  # {listed}\n"

    def words(self, chosen):
        return f"compiled {chosen['form']}"


FAMILIES = (
    Compiled(),
    next(each for each in kinds_for(TASK, "triton") if each.space.template == "packed"),
)


def told(source, number, message, **changes):
    """A step that was wrong so, or that passed."""
    if not message:
        return a_step(TASK, source, number=number)
    step = a_step(TASK, source, number=number, verdict=Verdict.WRONG)
    evaluation = replace(step.evaluation, message=message, **changes)
    return replace(step, evaluation=evaluation)


def rounds(source):
    family, chosen = header_of(source)
    space = next(each.space for each in FAMILIES if each.space.template == family)
    return bool(space.rounding(chosen))


def a_run(count, *, lag, judge=lambda source: ROUNDED if rounds(source) else "", pick=0,
          families=FAMILIES):  # fmt: skip
    """Ask n follows tell n - lag; the parent is what passed last, or one of those that failed."""
    proposer = a_proposer("triton", families=painted(*families), in_flight=lag)
    proposals, steps = [], []
    for number in range(count):
        if number >= lag:
            at = number - lag
            steps.append(told(proposals[at].source, at, judge(proposals[at].source)))
            proposer.learn(steps[-1])
        passed = [each for each in steps if each.evaluation.verdict is Verdict.PASSED]
        known = passed or steps
        parent = None
        if known and pick is not None:
            step = known[pick % len(known)]
            parent = an_exemplar(TASK, step.candidate.source, step.evaluation.verdict,
                                 message=step.evaluation.message)  # fmt: skip
        proposals.append(proposed(a_brief(TASK, number, parent=parent), proposer))
    return proposals


def short(proposals):
    """Family and what makes it round or not."""
    found = [header_of(each.source) for each in proposals]
    return [f"{name} {chosen.get('convolution') or chosen['precision']}" for name, chosen in found]


@pytest.mark.parametrize("pick", [None, 0, -1])
def test_one_after_the_other_the_step_back_comes_next_and_the_other_family_begins_exact(pick):
    made = a_run(4, lag=1, pick=pick)
    assert short(made)[:2] == ["compiled library", "compiled float32"]
    assert made[1].note.startswith("step back after wrong: convolution library -> float32")
    assert "packed bf16x6" in short(made)[2:3]
    assert not any(rounds(each.source) for each in made[1:])


@pytest.mark.parametrize("pick", [None, 0, -1])
def test_two_at_a_time_both_step_back_next(pick):
    made = a_run(4, lag=2, pick=pick)
    assert short(made) == [
        "compiled library", "packed tf32", "compiled float32", "packed bf16x6",
    ]  # fmt: skip
    assert made[3].note.startswith("step back after wrong: precision tf32 -> bf16x6")


@pytest.mark.parametrize("pick", [None, 0, -1])
def test_many_at_a_time_never_write_the_same_or_round_again(pick):
    made = a_run(24, lag=5, pick=pick)
    sources = [each.source for each in made]
    assert len(set(sources)) == len(sources)
    assert not any(rounds(each) for each in sources[5:])
    assert sources == [each.source for each in a_run(24, lag=5, pick=pick)]


def test_a_run_that_goes_on_after_its_end_steps_back_from_both():
    first = a_run(2, lag=2)
    steps = [told(each.source, n, ROUNDED) for n, each in enumerate(first)]
    proposer = a_proposer("triton", families=painted(*FAMILIES), in_flight=2)
    for step in steps:
        proposer.learn(step)
    shown = tuple(
        an_exemplar(TASK, each.candidate.source, Verdict.WRONG, message=ROUNDED) for each in steps
    )
    briefs = [a_brief(TASK, n, parent=shown[1], failures=shown[:1]) for n in (2, 3)]
    assert short(proposed(each, proposer) for each in briefs) == [
        "compiled float32", "packed bf16x6",
    ]  # fmt: skip


def test_what_a_brief_shows_does_not_count_as_in_flight():
    proposer = a_proposer(families=painted(Painted(), Painted(name="drawn")), in_flight=2)
    sources = [proposed(a_brief(TASK, n), proposer).source for n in range(2)]
    for number, source in enumerate(sources):
        proposer.learn(told(source, number, "shape"))
    shown = tuple(an_exemplar(TASK, each, Verdict.WRONG) for each in sources)
    asked = [a_brief(TASK, n, failures=shown) for n in (2, 3)]
    made = [proposed(each, proposer).source for each in asked]
    assert len({*sources, *made}) == 4
    assert "painted" in made[0]


def test_only_the_rounding_is_given_up_until_that_is_wrong_too():
    def judge(source):
        return ROUNDED if rounds(source) else ELSEWHERE

    made = a_run(3, lag=1, judge=judge, pick=-1, families=FAMILIES[:1])
    forms = [header_of(each.source)[1]["form"] for each in made]
    assert forms == ["folded", "folded", "written"]
    assert short(made) == ["compiled library", "compiled float32", "compiled float32"]


def test_kernels_of_our_own_stay_our_own_when_they_step_back():
    family = Compiled()
    own = {**family.space.defaults, "convolution": "packed"}
    proposer = a_proposer("triton", families=painted(family))
    proposer.learn(told(family.source(own), 0, ROUNDED))
    assert short([proposed(a_brief(TASK, 1), proposer)]) == ["compiled packed_bf16x6"]


def test_a_choice_that_passed_may_round_whatever_was_wrong_elsewhere():
    def judge(source):
        return ROUNDED if "packed precision=tf32 " in source else ""

    made = a_run(12, lag=2, judge=judge)
    assert "packed bf16x6" in short(made)
    assert short(made).count("packed tf32") == 1
    assert short(made).count("compiled library") > 1


def test_another_error_is_followed_by_another_start_as_before():
    made = a_run(3, lag=2, judge=lambda source: ELSEWHERE, pick=None)
    assert rounds(made[2].source)


def test_float32_of_the_library_leaves_as_much_to_it_as_tf32_does():
    family = Compiled()
    proposer = a_proposer("triton", families=painted(family))
    covered = Coverage(own=0.02, library=0.98, samples=500)
    for number, form in enumerate(("folded", "written")):
        source = family.source({**family.space.defaults, "form": form})
        step = a_step(TASK, source, number=number, verdict=Verdict.CHEATED)
        proposer.learn(replace(step, evaluation=replace(step.evaluation, coverage=covered)))
    made = []
    for number in range(2, 5):
        made.append(proposed(a_brief(TASK, number), proposer))
        message = ROUNDED if rounds(made[-1].source) else "shape"
        proposer.learn(told(made[-1].source, number, message))
    assert short(made) == ["compiled packed", "compiled packed_bf16x6", "compiled packed_tf32x3"]


def test_families_that_do_not_round_are_as_they_were():
    family = Painted()
    proposer = a_proposer(families=painted(family))
    source = family.source(family.space.defaults)
    proposer.learn(told(source, 0, ROUNDED))
    shown = an_exemplar(TASK, source, Verdict.WRONG, message=ROUNDED)
    assert "another start after wrong" in proposed(a_brief(TASK, 1, parent=shown), proposer).note


def test_a_product_over_channels_rounds_only_where_a_convolution_may():
    point = a_task("return torch.relu(self.conv(x))", init="self.conv = nn.Conv2d(64, 128, 1)",
                   inputs="torch.randn(16, 64, 128, 128)")  # fmt: skip
    family = product_family(point)
    space = family.space
    exact = space.exactly(space.defaults)
    assert exact == {**space.defaults, "precision": "bf16x6"}
    assert "allow_tf32" in family.source(space.defaults)
    assert "allow_tf32" not in family.source(exact)
    linear = a_task("return torch.relu(self.fc(x))", init="self.fc = nn.Linear(64, 128)",
                    inputs="torch.randn(4096, 64)")  # fmt: skip
    space = product_family(linear).space
    assert not space.rounding(space.defaults)


def test_a_value_that_rounds_needs_one_that_does_not():
    for instead in ((), (("p", "a"),), (("q", "b"),)):
        with pytest.raises(ValueError, match="does not round"):
            Parameter(name="p", choices=("a", "b"), default="a", why="", rounded=(("a", instead),))
    one = Parameter(name="p", choices=("a", "b"), default="a", why="",
                    rounded=(("a", (("p", "b"), ("q", "1"))),))  # fmt: skip
    with pytest.raises(ValueError, match="q=1, which is no choice"):
        Space(template="t", parameters=(one,), seeds=())
