"""From captures to families: asked once, own products and forms in a sensible order."""

import ast
import contextlib
import dataclasses
import pickle
import sys
from pathlib import Path

import pytest
from rule_briefs import a_brief, a_proposer, proposed

sys.path.insert(0, str(Path(__file__).parent / "compiler"))
from compiled_cases import captured, task

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.compiled_families import (
    Captures,
    expected_gain,
    from_compiler,
    ordered,
    reseeded,
)
from kernelsmith.propose.rules.compiler.capture import AUTOTUNE, DEFAULT, Request, Skipped
from kernelsmith.propose.rules.families import Families
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised

WORKLOAD = Workload(name="one")


class Replay:
    """Answers with captures from files, and counts what it was asked."""

    def __init__(self, name, **options):
        self.found = {"default": captured(name), **options}
        self.asked = 0

    def __call__(self, task, requests):
        self.asked += len(requests)
        return [
            self.found.get(each.options.name, Skipped(reason=f"no {each.options.name} here"))
            for each in requests
        ]


def a_task(name):
    return dataclasses.replace(task(name), workloads=(WORKLOAD,))


def a_form(name="written", cost=None, of="linear_gelu"):
    return Form(name=name, source=task(of).source, cost_us=cost)


def family(name="linear_gelu", forms=None, capture=None):
    (found,) = from_compiler(
        a_task(name), "triton", forms or [a_form(of=name)], capture=capture or Replay(name)
    )
    return found


def test_a_product_begins_as_our_own_and_goes_on_with_the_librarys():
    found = family()
    first, second, *_ = found.space.starts
    assert first["product"] == "auto"
    assert second == {**first, "product": "library"}
    sources = [found.source(each) for each in (first, second)]
    assert "addmm" in sources[1]
    for source in sources:
        ast.parse(source)
    assert len(set(sources)) == 2


def test_a_librarys_product_with_hardly_anything_behind_it_comes_last():
    space = family().family.space
    own = [(("product", "tiles"),)]
    assert reseeded(space, own).seeds[1] == (("product", "library"),)
    late = reseeded(space, own, decoy=True).seeds
    assert late[-1] == (("product", "library"),)
    assert (("product", "tiles"),) in late[:-1]


def test_forms_options_and_schedules_take_turns_after_that():
    replay = Replay("linear_gelu", autotune=captured("linear_gelu", option="_autotune"))
    found = family(forms=[a_form(), a_form("other")], capture=replay)
    seeds = [each[0][0] for each in found.space.seeds[2:6] if each]
    assert {"form", "option"} < set(seeds)
    assert len(seeds) > 3


def test_without_products_the_family_is_the_compilers():
    found = family("layer_norm")
    assert "product" not in [each.name for each in found.space.parameters]
    ast.parse(found.source(found.space.defaults))


def test_the_compiler_is_asked_once_and_never_again():
    replay = Replay("linear_gelu")
    found = family(capture=replay)
    asked = replay.asked
    for chosen in found.space.starts:
        with contextlib.suppress(NotRecognised):
            found.source(chosen)
    assert replay.asked == asked


def test_a_closed_capture_answers_from_what_it_knows():
    replay = Replay("layer_norm")
    captures = Captures(replay)
    known = Request(source="a", workload=WORKLOAD, options=DEFAULT)
    first = captures(None, [known])
    captures.close()
    late = captures(None, [known, dataclasses.replace(known, options=AUTOTUNE)])
    assert late[:1] == first
    assert "before timing began" in late[1].reason
    assert replay.asked == 1


def test_forms_are_ordered_by_what_they_should_cost():
    forms = [a_form(cost=100.0), a_form("slower", 120.0), a_form("faster", 40.0)]
    assert [each.name for each in ordered(forms)] == ["faster", "written", "slower"]
    assert expected_gain(forms) == pytest.approx(2.5)
    assert [each.name for each in ordered([a_form(), a_form("x", 1.0)])] == ["written", "x"]
    assert expected_gain([a_form()]) == 1.0


def test_families_travel_between_processes():
    found = pickle.loads(pickle.dumps(Families(members=(family(),))))
    (member,) = found.members
    assert member.source(member.space.defaults) == family().source(member.space.defaults)


def test_a_proposer_starts_with_it_and_says_in_words_what_it_tries():
    found = Families(members=(family(),))
    proposal = proposed(
        a_brief(a_task("linear_gelu"), backend="triton"),
        a_proposer("triton", families=lambda *_: found),
    )
    assert proposal.source is not None
    assert "compiled" in proposal.note
    assert ".." not in proposal.note


def test_what_the_compiler_cannot_do_is_a_reason():
    def nothing(task, requests):
        return [Skipped(reason="no GPU is here")] * len(requests)

    with pytest.raises(NotRecognised, match="no GPU is here"):
        from_compiler(a_task("layer_norm"), "triton", [a_form(of="layer_norm")], capture=nothing)
