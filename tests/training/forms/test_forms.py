"""Forms: what is asked and answered, and that an answer reads back to the same program."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from training_parts import a_sample, a_task, shown

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Role
from kernelsmith.errors import UsageError
from kernelsmith.propose.header import body, header_of
from kernelsmith.propose.reply import Unreadable
from kernelsmith.propose.reply_edits import apply, edits_of
from kernelsmith.propose.rules.families import templates_only
from kernelsmith.training.forms.algebra import AlgebraEdits, rewritten
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.forms.program import edits_between
from kernelsmith.training.forms.rules_edits import RulesEdits

SOFTMAX = Task(
    name="softmax",
    source="import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    "        return torch.softmax(x, dim=-1)\n\n\ndef get_inputs():\n"
    "    return [torch.randn(8, 64)]\n\n\ndef get_init_inputs():\n    return []\n",
)


@pytest.fixture(scope="module")
def family():
    return templates_only(SOFTMAX, "cpu").members[0]


def a_brief(task, parent=None, speedup=1.5, backend="cpu", others=()):
    above = None if parent is None else shown(parent, speedup, Role.PARENT, backend)
    return Brief(number=3, task=task, backend=backend, island=0, seed=0, parent=above,
                 inspirations=others)  # fmt: skip


def changed(family):
    """A parameter and another value of it that gives another program."""
    usual = family.space.defaults
    for each in family.space.parameters:
        for value in each.choices:
            if value != each.default:
                chosen = usual | {each.name: value}
                if body(family.source(chosen)) != body(family.source(usual)):
                    return each.name, value, chosen
    raise AssertionError("nothing can be changed")


def test_a_typed_edit_reads_back_to_the_program_that_it_came_from(family):
    name, value, chosen = changed(family)
    parent, child = family.source(family.space.defaults), family.source(chosen)
    form, brief = RulesEdits("cpu"), a_brief(SOFTMAX, family.source(family.space.defaults))
    answer = form.answer(brief, child)
    assert answer == f"{name}={value}"
    assert form.source(answer, brief) == child != parent


def test_a_typed_prompt_is_short_and_names_what_was_tried(family):
    name, value, chosen = changed(family)
    brief = a_brief(SOFTMAX, family.source(family.space.defaults),
                    others=(shown(family.source(chosen), 2.25, backend="cpu"),))  # fmt: skip
    text = RulesEdits("cpu").messages(brief)[-1].content
    assert f"tried {name}={value} 2.2x" in text
    assert "speed 1.5x" in text
    assert "softmax" in text
    assert len(text) < 1500 < len(family.source(chosen))


def test_a_typed_prompt_says_what_there_is_to_choose(family):
    form = RulesEdits("cpu")
    names = [each.space.template for each in templates_only(SOFTMAX, "cpu").members]
    first = form.messages(a_brief(SOFTMAX))[-1].content
    assert f"families {' '.join(names)}" in first
    later = form.messages(a_brief(SOFTMAX, family.source(family.space.defaults)))[-1].content
    [line] = [each for each in later.splitlines() if each.startswith("may be ")]
    offered = dict(each.split("=", 1) for each in line.removeprefix("may be ").split())
    many = {e.name: list(e.choices) for e in family.space.parameters if len(e.choices) > 1}
    assert {name: said.split("|") for name, said in offered.items()} == many


def test_the_compiler_is_asked_only_for_what_the_brief_shows_or_the_source_does_not_tell(family):
    asked = []

    def find(task, backend):
        asked.append(task.name)
        return templates_only(task, backend)

    form = RulesEdits("cpu", find=find)
    unread = Task(name="unread", source="def get_inputs():\n    return []\n")
    assert form.at_hand(SOFTMAX)
    assert not form.at_hand(unread)
    with pytest.raises(Unreadable, match="no family nobody for this task; there are rows"):
        form.source("family=nobody", a_brief(SOFTMAX))
    assert asked == []
    elsewhere = "# kernelsmith rules: nobody width=4\nclass ModelNew: pass"
    with pytest.raises(Unreadable, match="no family nobody"):
        form.source("width=8", a_brief(SOFTMAX, elsewhere))
    with pytest.raises(Unreadable, match="there are none"):
        form.source("family=rows", a_brief(unread))
    assert asked == ["softmax", "unread"]


def test_a_first_typed_step_names_the_family_and_what_is_unusual(family):
    name, value, chosen = changed(family)
    form, brief = RulesEdits("cpu"), a_brief(SOFTMAX)
    answer = form.answer(brief, family.source(chosen))
    assert answer.startswith(f"family={family.space.template}")
    assert f"{name}={value}" in answer
    assert form.source(answer, brief) == family.source(chosen)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "empty"),
        ("speed it up please", "not an edit"),
        ("colour=red", "has no colour"),
        ("family=nobody", "no family nobody"),
        ("a=1 a=2", "given twice"),
        (" ".join(["a=1"] * 99), "few words"),
    ],
)
def test_a_reply_that_is_no_edit_is_refused_with_the_reason(family, reply, why):
    brief = a_brief(SOFTMAX, family.source(family.space.defaults))
    form = RulesEdits("cpu", find=templates_only)
    with pytest.raises(Unreadable, match=why):
        form.source(reply, brief)


def test_a_value_that_a_parameter_has_not_is_refused_with_those_it_has(family):
    each = family.space.parameters[0]
    brief = a_brief(SOFTMAX, family.source(family.space.defaults))
    with pytest.raises(Unreadable, match=f"{each.name} has no choice 12345; it has"):
        RulesEdits("cpu").source(f"{each.name}=12345", brief)
    with pytest.raises(Unreadable, match="change nothing"):
        RulesEdits("cpu").source(f"{each.name}={each.default}", brief)


def test_a_program_of_someone_else_has_no_typed_edit(family):
    brief = a_brief(SOFTMAX, "class ModelNew: pass")
    assert header_of("class ModelNew: pass") is None
    assert RulesEdits("cpu").answer(brief, "class ModelNew: x = 1") is None


def test_algebra_reads_back_every_edit():
    form = AlgebraEdits()
    task = a_task(source="x * 1 + y * 1 + 0")
    brief = a_brief(task, "x * 1 + y * 1 + 0", backend="null")
    for edit, source in rewritten("x * 1 + y * 1 + 0"):
        assert form.source(edit, brief) == source
        again = form.answer(brief, source)
        assert form.source(again, brief) == source
    with pytest.raises(Unreadable, match="no edit 'fold 7'; there are unit 0"):
        form.source("fold 7", brief)


LINES = some.lists(some.sampled_from(["a = 1", "b = 2", "", "    c = 3", "d()"]), max_size=12)


@given(old=LINES, new=LINES)
@settings(max_examples=300, deadline=None)
def test_edits_between_two_programs_give_the_second_or_are_not_given(old, new):
    before, after = "\n".join(old), "\n".join(new)
    edits = edits_between(before, after)
    if edits is not None:
        assert apply(edits_of(edits), before) == after
    else:
        assert before == after or not before.strip()


def test_a_change_of_one_line_is_a_short_diff():
    lines = [f"x{n} = {n}" for n in range(60)]
    edits = edits_between("\n".join(lines), "\n".join([*lines[:30], "y = 1", *lines[31:]]))
    assert edits == "<<<<<<< SEARCH\nx30 = 30\n=======\ny = 1\n>>>>>>> REPLACE"


def test_whole_programs_read_back():
    sample = a_sample(0, source="class ModelNew:\n    pass\n", backend="cpu",
                      task=Task(name="t", source="class Model: pass"))  # fmt: skip
    form = form_named("whole", "cpu")
    answer = form.answer(sample.brief, sample.candidate.source, "try")
    assert answer.startswith("Idea: try\n```python")
    assert form.source(answer, sample.brief) == sample.candidate.source


@pytest.mark.parametrize("name", ["whole", "diff"])
def test_what_the_rules_wrote_is_taught_as_a_program_without_the_line_that_signs_it(family, name):
    parent, child = family.source(family.space.defaults), family.source(changed(family)[2])
    assert header_of(parent) != header_of(child)
    form = form_named(name, "cpu")
    for brief in (a_brief(SOFTMAX), a_brief(SOFTMAX, parent)):
        answer = form.answer(brief, child)
        assert form.source(answer, brief) == body(child)
        assert header_of("\n".join([answer, *(m.content for m in form.messages(brief))])) is None


def test_forms_that_are_not_there_are_named():
    with pytest.raises(UsageError, match="no form 'poem'"):
        form_named("poem", "cpu")
    with pytest.raises(UsageError, match="for 'maca' use the form diff or whole"):
        form_named("typed", "maca")
