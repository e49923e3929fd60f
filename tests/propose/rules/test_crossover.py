"""Two variants of one family give a third."""

import random

from rule_briefs import Painted

from kernelsmith.propose.rules.crossover import crossings
from kernelsmith.propose.rules.statistics import Statistics, Trial, key_of

SPACE = Painted().space
PARENT = SPACE.defaults
OTHER = {"size": "16", "warps": "8", "colour": "red"}


def crossed(others, known=None, count=20):
    return crossings(
        SPACE, PARENT, others, known=known or Statistics(), rng=random.Random(0), count=count
    )


def test_a_child_takes_something_from_both_and_nothing_from_elsewhere():
    children = crossed([OTHER])
    assert len(children) > 3
    for child in children:
        assert child.chosen not in (PARENT, OTHER)
        assert all(value in (PARENT[n], OTHER[n]) for n, value in child.chosen.items())
        assert "inspiration" in child.note


def test_what_was_tried_is_not_made_again():
    tried = crossed([OTHER])[0].chosen
    known = Statistics.of([Trial(family="painted", chosen=key_of(tried), gain=0.1)])
    assert tried not in [child.chosen for child in crossed([OTHER], known)]


def test_two_that_differ_in_one_parameter_have_no_child():
    assert crossed([{**PARENT, "size": "8"}]) == []
    assert crossed([]) == []
