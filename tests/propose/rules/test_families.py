"""Families side by side: whose text is whose, and in which order they begin."""

import pickle
from dataclasses import replace
from itertools import islice

import pytest
from rule_briefs import Painted
from rule_tasks import KNOWN, UNKNOWN, a_task

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Workload
from kernelsmith.propose.header import body
from kernelsmith.propose.rules.compiled_families import Reseeded
from kernelsmith.propose.rules.families import (
    Begun,
    Families,
    Finder,
    at_hand,
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


LARGE = "torch.randn(4096, 4096)"
LAYER = "self.fc = nn.Linear(4096, 4096)"
PRODUCT = a_task("return x @ y", names="x, y", inputs=f"{LARGE}, {LARGE}")
LINEAR_GELU = a_task("return F.gelu(self.fc(x))", init=LAYER, inputs=LARGE)
LINEAR_SOFTMAX = a_task("return F.softmax(self.fc(x), dim=-1)", init=LAYER, inputs=LARGE)
NARROW = a_task(
    "return F.gelu(self.fc(x))", init="self.fc = nn.Linear(32, 64)", inputs="torch.randn(65536, 32)"
)


def names(families):
    return [each.space.template for each in families.members]


class Answered(Finder):
    """Stands for asking the compiler."""

    def __call__(self, task, backend):
        return Families(members=(Painted(),))


@pytest.mark.parametrize("task", [PRODUCT, LINEAR_GELU])
def test_a_short_run_has_a_product_of_its_own_without_the_compiler(task):
    found = at_hand(task, "triton", find=Answered())
    assert names(found) == ["products"]
    assert "tl.dot" in found.members[0].source(found.members[0].space.defaults)


def test_a_short_run_asks_the_compiler_where_all_it_knows_follows_the_library():
    assert names(templates_only(LINEAR_SOFTMAX, "triton")) == ["rows"]
    assert names(at_hand(LINEAR_SOFTMAX, "triton", find=Answered())) == ["painted"]
    assert names(at_hand(LINEAR_SOFTMAX, "cpu", find=Answered())) == ["rows"]


def test_what_follows_the_library_stays_behind_our_product_where_it_is_no_decoy():
    assert names(templates_only(NARROW, "triton")) == ["products", "rows"]
    halves = replace(LINEAR_GELU, workloads=(Workload(dtype="bfloat16"),))
    assert names(templates_only(halves, "triton")) == ["products", "rows"]


def test_products_are_for_gpus():
    assert "products" not in names(templates_only(LINEAR_GELU, "cpu"))
    interpreter = Device(kind="cpu", name="a processor (Triton interpreter)")
    assert names(templates_only(LINEAR_GELU, "triton", interpreter)) == ["rows"]
    asks = Answered(device=interpreter)
    assert names(at_hand(LINEAR_GELU, "triton", find=asks)) == ["rows"]


@pytest.mark.parametrize("task", [PRODUCT, LINEAR_GELU, NARROW])
def test_a_product_is_written_by_one_family_only(task):
    own = Begun(families=Families(members=(Painted(size="product"),)))
    assert names(own.joined(task, "triton")) == ["painted"]
    other = names(Begun(families=Families(members=(Painted(),))).joined(task, "triton"))
    assert other[0] == "products"
    assert other[-1] == "painted"
    nothing = Begun(families=Families(reasons=("a graph break",)))
    assert nothing.joined(task, "triton").members[0].space.template == "products"


@pytest.mark.slow
def test_the_compiler_is_asked_about_a_real_task_on_this_machine():
    families = families_for(KNOWN["softmax"], "cpu")
    names = [each.space.template for each in families.members]
    assert names[0] == "rows"
    assert "cpp_compiled" in names
    sources = {each.family.source(each.chosen) for each in families.starts()}
    assert len(sources) == len(list(families.starts()))
    assert all(families.owner(each) is not None for each in sources)


def test_a_late_family_begins_after_the_others_have_tried():
    late = Reseeded(family=Painted(name="late"), space=Painted(name="late").space, is_late=True)
    found = Families(members=(late, Painted(seeds=((), (("colour", "red"),), (("size", "2"),)))))
    names = [each.name for each in found.starts()]
    assert names[:3] == ["painted"] * 3
    assert names[3] == "late"
    alone = Families(members=(late,))
    assert next(iter(alone.starts())).name == "late"


def test_a_lone_convolution_of_one_point_is_first_a_product_that_reads_it_where_it_lies():
    """The compiler copies channels to lie side by side, and back: 0.32 times eager on an H200."""
    task = a_task(
        "return self.conv(x)", init="self.conv = nn.Conv2d(64, 128, 1, bias=False)",
        inputs="torch.randn(16, 64, 256, 256)",
    )  # fmt: skip
    multiplies = Painted(name="late", size="product")
    late = Reseeded(family=multiplies, space=multiplies.space, is_late=True)
    found = Begun(families=Families(members=(late,))).joined(task, "triton")
    begins = [each.name for each in found.starts()]
    assert begins[0] == "products"
    assert begins.index("late") > begins.index("packed") > 0
    (first,) = islice(found.starts(), 1)
    assert "b_ptr + batch * 4194304 + k[:, None] * 65536 + n[None, :]" in first.family.source(
        first.chosen
    ).replace("\n", " ")
