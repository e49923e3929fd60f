"""Each family against float64 on tasks, parameters, shapes and inputs drawn at random, in C++."""

import random

import pytest
from drawn_check import mismatches
from drawn_kinds import DRAWN
from drawn_rows import drawn_flat, drawn_rows

from kernelsmith.propose.rules.kinds import kinds_for, why_none
from kernelsmith.propose.rules.templates import template_for

pytestmark = pytest.mark.filterwarnings("ignore:var")
FAMILIES = {"flat": drawn_flat, "rows": drawn_rows, **DRAWN}
FEW, MANY = 2, 26
"""Draws for each family in a short run, and in a long one: a draw takes a second to compile."""


def the_family(task, name):
    if name in ("flat", "rows"):
        return template_for(task, "cpu")
    found = [each for each in kinds_for(task, "cpu") if each.space.template == name]
    assert found, f"{why_none(task, 'cpu')[name]}\n{task.source}"
    return found[0]


def check(name, seed):
    rng = random.Random(f"{name} {seed}")
    drawn = FAMILIES[name](rng)
    family = the_family(drawn.task, name)
    assert family.space.template == name
    chosen = {each.name: rng.choice(each.choices) for each in family.space.parameters}
    wrong = mismatches(drawn, family.source(chosen), rng)
    assert not wrong, "\n".join([drawn.task.source, str(chosen), *wrong])


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_right_on_whatever_is_drawn(name):
    for seed in range(FEW):
        check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, MANY))
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_right_on_more_that_is_drawn(name, seed):
    check(name, seed)
