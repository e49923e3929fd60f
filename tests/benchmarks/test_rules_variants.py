"""A quick look at the variants of one family."""

from pathlib import Path

import pytest
from benchmarks.rules_tasks import Chosen
from benchmarks.rules_variants import Looked, families_of, variants

TASK = Path("tasks/logsumexp.py")


@pytest.fixture(scope="module")
def task():
    return Chosen(key="logsumexp", path=TASK).task(gpu=False)


@pytest.fixture(scope="module")
def family(task):
    return families_of(Chosen(key="logsumexp", path=TASK), task, "cpu", None).named("rows")


def test_starts_come_first_and_then_whatever_differs_in_one_parameter(family):
    found = list(variants(family, []))
    starts = family.space.starts
    assert found[: len(starts)] == starts
    assert len({tuple(sorted(each.items())) for each in found}) == len(found)
    apart = [sum(each[n] != starts[0][n] for n in each) for each in found[len(starts) :]]
    assert set(apart) == {1}


def test_what_is_varied_comes_in_all_combinations(family):
    found = list(variants(family, ["width=8,16", "passes"]))
    assert {(each["width"], each["passes"]) for each in found} == {
        (width, passes) for width in ("8", "16") for passes in ("multi", "online")
    }


def test_a_variant_is_loaded_with_the_reference_s_weights_and_held_against_it(
    task, family, tmp_path
):
    looked = Looked(task, "cpu", tmp_path)
    made = looked.made(family.source(family.space.starts[0]))
    assert looked.off(made(*looked.inputs)) < 1e-5
    assert looked.off(looked.expected + 1.0) > 1e-3
    assert looked.us(lambda: made(*looked.inputs)) > 0
