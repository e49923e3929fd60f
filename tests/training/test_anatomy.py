"""What best steps share, and what predicts gain."""

import pytest
from training_parts import a_sample, a_task

from kernelsmith.errors import UsageError
from kernelsmith.training.anatomy import features_of, predictors, table_of, taken_apart

HEAD = "# kernelsmith rules: rows block={} unroll={}\nvoid kernel() {{\n  int b = {};\n}}\n"


def program(block, unroll):
    return HEAD.format(block, unroll, block * unroll)


def some_steps():
    """Unrolling gains on every task, larger blocks lose; depth says nothing."""
    steps = []
    for index in range(6):
        task = a_task(f"t{index}")
        for number, (block, unroll, speed) in enumerate(
            [(4, 2, 1.4), (8, 1, 0.8), (4, 4, 1.6), (16, 1, 0.7)]
        ):
            steps.append(
                a_sample(number, run=f"r{index}", task=task, source=program(block, unroll),
                         speedup=speed + index / 50, parent=(program(4, 1), 1.0),
                         best=speed > 1)
            )  # fmt: skip
    return steps


def test_a_transformation_is_named_by_the_parameter_that_it_changes():
    found = features_of(program(4, 1), program(4, 2))
    assert (found["kind"], found["region"]) == ("unroll", "kernel")
    assert features_of("a = 1\n", "a = 2\n")["kind"] == "numbers"
    assert features_of("a = 1\n", "a = 1\nb = f(a)\n")["kind"] == "addition"
    other = program(4, 1).replace("rules: rows", "rules: scan")
    assert features_of(program(4, 1), other)["kind"] == "family scan"


def test_what_gains_everywhere_is_found_to_predict_gain_on_unseen_tasks():
    steps = taken_apart(some_steps(), surprise=lambda sample: float(sample.brief.number))
    found = {each.feature: each for each in predictors(steps)}
    assert found["kind"].rank_correlation > 0.7
    assert found["kind"].low > 0.5
    assert found["depth"].rank_correlation == 0.0
    table = table_of(steps, predictors(steps))
    assert "unroll 100%" in table
    assert "| surprise |" in table


def test_two_tasks_are_too_few():
    with pytest.raises(UsageError, match="at least 3 tasks"):
        predictors(taken_apart(some_steps()[:8]))
