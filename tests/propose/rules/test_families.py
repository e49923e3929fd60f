"""Families side by side: whose text is whose, and in which order they begin."""

import pickle
from itertools import islice

import pytest
from rule_briefs import Painted
from rule_tasks import KNOWN, UNKNOWN

from kernelsmith.propose.rules.families import (
    Begun,
    Families,
    at_hand,
    body,
    families_for,
    templates_only,
)
from kernelsmith.propose.rules.family import owned


def test_a_text_belongs_to_the_family_whose_parameters_give_it():
    families = Families(members=(Painted(), Painted(name="drawn")))
    chosen = {"size": "8", "warps": "1", "colour": "green"}
    source = Painted(name="drawn").source(chosen)
    owner = families.owner(source)
    assert (owner.name, owner.chosen) == ("drawn", chosen)
    assert families.owner(source + "# edited\n") is None
    assert families.owner("class ModelNew: ...") is None


def test_a_header_that_its_family_cannot_write_any_more_is_nobodys():
    source = Painted().source(Painted().space.defaults)
    assert Families(members=(Painted(unwritable="blue"),)).owner(source) is None


def test_starts_alternate_and_the_walk_reaches_every_variant():
    families = Families(members=(Painted(), Painted(name="drawn", seeds=((),))))
    assert [each.name for each in families.starts()] == ["painted", "drawn", "painted"]
    seen = {
        (each.name, tuple(each.chosen.items())) for each in [*families.starts(), *families.walk(3)]
    }
    assert len(seen) == 2 * Painted().space.size


def test_two_families_cannot_have_the_same_name():
    with pytest.raises(ValueError, match="names of their own"):
        Families(members=(Painted(), Painted()))


def test_a_task_that_no_template_knows_leaves_its_reason():
    for says, task in UNKNOWN.items():
        families = templates_only(task, "cpu")
        assert "rows" not in [each.space.template for each in families.members]
        assert says in families.reasons[0]


def test_a_template_is_a_family_that_says_what_it_tries():
    template, *_ = templates_only(KNOWN["softmax"], "triton").members
    assert template.space.template == "rows"
    chosen = template.space.defaults
    assert owned(template, template.source(chosen)) == chosen
    assert "one fused kernel" in template.words(chosen)
    assert pickle.loads(pickle.dumps(template)).source(chosen) == template.source(chosen)


def test_a_short_run_does_not_wait_for_the_compiler_where_a_template_fits():
    task = KNOWN["softmax"]
    found = [each.space.template for each in at_hand(task, "cpu").members]
    assert found == [each.space.template for each in templates_only(task, "cpu").members]
    assert found


def test_the_program_is_what_stands_below_the_header():
    one = Painted().source(Painted().space.defaults)
    assert body(one) == one.partition("\n")[2]
    assert list(islice(body(one), 5)) == list("class")


def test_a_form_that_should_gain_much_goes_before_what_the_source_alone_says():
    begun = Families(members=(Painted(),), reasons=("no product",))
    for gain, first in ((1.0, "rows"), (1.5, "painted")):
        families = Begun(families=begun, gain=gain).joined(KNOWN["softmax"], "cpu")
        assert families.members[0].space.template == first
        assert "no product" in families.reasons


def test_own_products_take_the_place_of_what_follows_a_librarys():
    task = KNOWN["linear_softmax"]
    assert "rows" in [each.space.template for each in templates_only(task, "triton").members]
    for size, kept in (("size", True), ("product", False)):
        begun = Begun(families=Families(members=(Painted(size=size),)))
        names = [each.space.template for each in begun.joined(task, "triton").members]
        assert ("rows" in names) is kept
        assert (names[0] == "painted") is not kept


@pytest.mark.slow
def test_the_compiler_is_asked_about_a_real_task_on_this_machine():
    families = families_for(KNOWN["softmax"], "cpu")
    names = [each.space.template for each in families.members]
    assert names[0] == "rows"
    assert "cpp_compiled" in names
    sources = {each.family.source(each.chosen) for each in families.starts()}
    assert len(sources) == len(list(families.starts()))
    assert all(families.owner(each) is not None for each in sources)
