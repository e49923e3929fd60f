"""The learned model: on recorded landscapes of our own kernels, and at its edges."""

import math
import random
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from rule_briefs import Painted, a_brief, a_proposer, a_step, an_exemplar, painted, proposed
from rule_tasks import KNOWN

from kernelsmith.propose.rules import guidance
from kernelsmith.propose.rules.guidance import Point, encoded, expected
from kernelsmith.propose.rules.space import Parameter
from kernelsmith.propose.rules.statistics import Trial, key_of

FAMILY = Painted()
SPACES = {"painted": FAMILY.space, "drawn": Painted(name="drawn").space}


def a_point(family="painted", **changes):
    return Point(family=family, chosen=key_of({**FAMILY.space.defaults, **changes}))


def gain_of(chosen):
    """A landscape with one best place: size 8, warps 2, red."""
    gain = -abs(math.log2(int(chosen["size"]) / 8)) - 0.5 * abs(math.log2(int(chosen["warps"]) / 2))
    return 0.3 * (gain + (chosen["colour"] == "red"))


def every():
    space = FAMILY.space
    return [space.seed(number, 0) for number in range(space.size + len(space.starts))]


def trials(count, seed=0):
    drawn = random.Random(seed).sample(every(), count)
    return [Trial(family="painted", chosen=key_of(c), gain=gain_of(c)) for c in drawn]


def test_too_few_measurements_are_no_model():
    assert expected(trials(5), [a_point()], SPACES) is None
    assert expected(trials(6), [], SPACES) is None
    failed = [Trial(family="painted", chosen=each.chosen, failed=True) for each in trials(9)]
    assert expected(failed, [a_point()], SPACES) is None


def test_what_it_prefers_is_better_than_what_a_draw_gives():
    better = []
    for seed in range(6):
        known = trials(12, seed)
        rest = [c for c in every() if key_of(c) not in {each.chosen for each in known}]
        points = [Point(family="painted", chosen=key_of(c)) for c in rest]
        said = expected(known, points, SPACES)
        best = max(range(len(rest)), key=lambda at: said[at].promise)
        better.append(gain_of(rest[best]) - sum(map(gain_of, rest)) / len(rest))
    assert sum(better) / len(better) > 0.3
    assert min(better) > 0


@pytest.mark.parametrize("apart", [0.0, 1e-4, 0.01, 0.04])
def test_gains_that_are_all_alike_are_no_error(apart):
    known = [replace(each, gain=0.7 + apart * (n % 2)) for n, each in enumerate(trials(9))]
    (said,) = expected(known, [a_point(size="2", colour="green")], SPACES)
    assert said.speedup == pytest.approx(math.exp(0.7 + apart / 2), rel=0.05)


def test_several_threads_fit_without_a_warning_to_anyone():
    # One value at both ends: the length runs into its bound, which scikit-learn warns of.
    known = [replace(each, gain=float(at % 2)) for at, each in enumerate(trials(12))]
    with warnings.catch_warnings(record=True) as said, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        found = list(pool.map(lambda _: expected(known, [a_point()], SPACES), range(24)))
    assert all(each is not None for each in found)
    assert not [str(each.message) for each in said if "onverge" in each.category.__name__]


def test_the_same_measurements_give_the_same_expectation():
    points = [a_point(size=size) for size in ("1", "8")]
    assert expected(trials(10), points, SPACES) == expected(trials(10), points, SPACES)


def test_failures_lower_what_is_expected_nearby():
    known = [t for t in trials(20) if dict(t.chosen)["colour"] != "green"]
    failed = [
        Trial(family="painted", chosen=a_point(colour="green", size=s).chosen, failed=True)
        for s in ("1", "4", "16")
    ]
    point = [a_point(colour="green", size="8")]
    before, after = expected(known, point, SPACES), expected([*known, *failed], point, SPACES)
    assert after[0].speedup < before[0].speedup


def careful_trials(gains):
    """Measurements of sizes, without the C library's functions unless ``gains`` says otherwise."""
    drawn = [each for each in every() if each["colour"] == "blue"]
    drawn = random.Random(3).sample(drawn, 9)
    known = [({**each, "math": "poly"}, gain_of(each)) for each in drawn]
    known += [({**each, "math": "libm"}, gain) for each, gain in zip(drawn, gains, strict=False)]
    return [Trial(family="careful", chosen=key_of(c), gain=gain) for c, gain in known]


def careful(parameters):
    return {"careful": replace(FAMILY.space, template="careful", parameters=parameters)}


def test_what_is_there_to_be_exact_is_not_tried_to_find_out_that_it_is_slower():
    choice = Parameter(
        name="math", choices=("poly", "libm"), default="poly", safe="libm", ordered=False, why="x"
    )
    exact = careful((*FAMILY.space.parameters, choice))
    taste = careful((*FAMILY.space.parameters, replace(choice, name="mood", safe=None)))
    start = {**FAMILY.space.defaults, "size": "8", "warps": "2"}
    points = [
        Point(family="careful", chosen=key_of({**start, "math": value}))
        for value in ("poly", "libm")
    ]
    poly, libm = expected(careful_trials([]), points, exact)
    calm, wild = expected(
        [replace(each, chosen=_renamed(each.chosen)) for each in careful_trials([])],
        [replace(each, chosen=_renamed(each.chosen)) for each in points],
        taste,
    )
    assert poly.speedup == pytest.approx(calm.speedup)
    assert libm.speedup < 0.7 * wild.speedup

    quick = [gain + 0.5 for gain in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    poly, libm = expected(careful_trials(quick), points, exact)
    assert libm.speedup > poly.speedup


def _renamed(key):
    return key_of({"mood" if name == "math" else name: value for name, value in key})


def test_a_family_that_nobody_tried_is_less_sure_than_a_known_place():
    known = trials(20)
    there, elsewhere = expected(
        known, [Point(family="painted", chosen=known[0].chosen), a_point("drawn")], SPACES
    )
    assert there.speedup == pytest.approx(math.exp(known[0].gain), rel=0.25)
    doubt = [each.promise - math.log(each.speedup) for each in (there, elsewhere)]
    assert doubt[1] > 2 * doubt[0] > 0


def test_features_leave_out_what_never_varies():
    rows = encoded([a_point(size="1"), a_point(size="16")], SPACES)
    assert rows.tolist() == [[0.0], [1.0]]
    assert encoded([a_point(), a_point()], SPACES).shape == (2, 1)
    assert encoded([a_point(), a_point("drawn")], SPACES).shape[1] > 2


def test_a_proposer_that_has_measured_enough_says_what_it_expects():
    task = KNOWN["softmax"]
    proposer = a_proposer(families=painted(FAMILY))
    for number, trial in enumerate(trials(10)):
        step = a_step(task, FAMILY.source(dict(trial.chosen)), math.exp(trial.gain), number=number)
        proposer.learn(step)
    parent = an_exemplar(task, FAMILY.source(dict(trials(10)[0].chosen)))
    proposal = proposed(a_brief(task, 10, parent=parent), proposer)
    assert "is expected after 10 measurements" in proposal.note


def test_without_scikit_learn_there_is_no_model_and_no_error(monkeypatch):
    def missing(part):
        raise ImportError(part)

    monkeypatch.setattr(guidance, "_sklearn", missing)
    assert not guidance.is_available()
    assert expected(trials(10), [a_point()], SPACES) is None


def test_the_model_needs_no_torch():
    code = (
        "import sys; from kernelsmith.propose.rules import guidance; guidance.is_available();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
