"""What a brief becomes, and what is cut from it."""

from dataclasses import replace

import pytest
from briefs import MARKED, PROGRAM, TASK, a_brief, a_failure, an_exemplar
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library, Task, Weights
from kernelsmith.domain.trajectory import Role
from kernelsmith.errors import UsageError
from kernelsmith.propose import hardware, knowledge
from kernelsmith.propose.prompt import TooLong, cuts_for, messages_of
from kernelsmith.propose.prompt_feedback import clip, fenced
from kernelsmith.propose.prompt_fit import Part, fitted
from kernelsmith.propose.prompt_options import Form, Preset, PromptOptions
from kernelsmith.propose.tokens import count, count_messages

WRONG = a_failure(PROGRAM + "# wrong\n", "out[3]: expected 2.0, found 4.0 at (17, 5)")
BROKEN = a_failure(
    PROGRAM + "# broken\n", "kernel.cpp:3: error: expected ';'", Verdict.BUILD_FAILED
)


def the_prompt(brief, **options):
    system, user = messages_of(brief, options=PromptOptions(**options))
    assert (system.role, user.role) == ("system", "user")
    return f"{system.content}\n=====\n{user.content}"


def a_full_brief(size=200):
    """Parent, four inspirations and three failures, each with ``size`` characters of its own."""
    program = lambda n: f"{PROGRAM}# program {n} " + "x" * size + "\n"  # noqa: E731
    return a_brief(
        parent=an_exemplar(program("parent"), output="printed " + "o" * size),
        inspirations=(
            an_exemplar(program("top 0"), Role.TOP, 3.0),
            an_exemplar(program("top 1"), Role.TOP, 2.5),
            an_exemplar(program("diverse 2"), Role.DIVERSE, 1.5),
            an_exemplar(program("diverse 3"), Role.DIVERSE, 1.2),
        ),
        failures=tuple(
            a_failure(program(f"failure {n}"), f"log {n} " + "y" * size) for n in range(3)
        ),
    )


def test_the_reference_is_shown_and_what_is_held_out_is_not():
    prompt = the_prompt(a_full_brief())
    assert "return x * 2" in prompt
    assert "small: get_inputs(n=64)" in prompt
    assert "secret" not in prompt
    assert "771" not in prompt
    assert "get_workloads" not in prompt
    assert "not shown" in prompt


def test_the_parent_comes_with_all_that_was_measured():
    prompt = the_prompt(a_brief(parent=an_exemplar()))
    for expected in (
        "return x + x", "passed: right, 2.000x [1.960, 2.040] the speed of eager",
        "time on small: 10.00 us, eager 20.00 us, speed-up 2.000x [1.960, 2.040] (2 samples)",
        "error 1.00e-08 of 1.00e-06 allowed", "75% of the time in the program's own code",
        "at least 512 bytes must move", "40% of the measured bandwidth",
        "label fragile: wrong on strided inputs", "| double_kernel | own | 1 | - | 32 |",
        "Some CPU (cpu, 2 cores)", "compiler g++ 12",
    ):  # fmt: skip
        assert expected in prompt


def test_a_failed_parent_comes_with_its_log():
    failed = replace(WRONG, role=Role.PARENT)
    prompt = the_prompt(a_brief(parent=failed))
    assert "wrong: it ran, and its output is not the reference's" in prompt
    assert "expected 2.0, found 4.0 at (17, 5)" in prompt


def test_failures_say_what_came_of_them():
    prompt = the_prompt(a_brief(failures=(WRONG, BROKEN)))
    assert "Attempts that failed, newest first" in prompt
    assert "build failed" in prompt
    assert "expected ';'" in prompt
    assert prompt.index("# wrong") < prompt.index("# broken")


def test_a_program_is_shown_once():
    parent = an_exemplar()
    again = an_exemplar(role=Role.TOP)
    prompt = the_prompt(
        a_brief(parent=parent, inspirations=(again, again), failures=(WRONG, WRONG))
    )
    assert prompt.count(str(parent.candidate.id)) == 1
    assert prompt.count("# wrong") == 1


def test_the_same_brief_gives_the_same_bytes():
    assert the_prompt(a_full_brief()) == the_prompt(a_full_brief())
    assert the_prompt(a_brief(seed=1, number=3)) == the_prompt(a_brief(seed=2, number=4))


def test_the_papers_rules_are_a_preset():
    free, paper = the_prompt(a_brief()), the_prompt(a_brief(), preset="paper")
    assert "Keep the launch grid" not in free
    assert "Keep the launch grid" in paper
    assert PromptOptions(preset="paper").preset is Preset.PAPER
    with pytest.raises(UsageError, match="no preset 'none'; known are free, paper"):
        PromptOptions(preset="none")
    with pytest.raises(UsageError, match="needs tokens"):
        PromptOptions(budget_tokens=0)


def test_the_form_of_the_reply_is_asked_for():
    assert "one fenced block" in the_prompt(a_brief())
    diff = the_prompt(a_brief(parent=an_exemplar()), form=Form.DIFF)
    assert "<<<<<<< SEARCH" in diff
    assert "one fenced block" not in diff
    assert "<<<<<<< SEARCH" not in the_prompt(a_brief(), form=Form.DIFF)  # nothing to edit yet
    assert "EVOLVE-BLOCK-START" in the_prompt(a_brief(parent=an_exemplar(MARKED)))
    assert "EVOLVE-BLOCK" not in the_prompt(a_brief(parent=an_exemplar()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": Weights.STATIC}, "prepare(self)"),
        ({"weights": Weights.SEED}, "constructed under one seed"),
        ({"weights": Weights.DYNAMIC}, "rewritten in place"),
        ({"library": Library.NONE}, "only allocation, views and launches"),
        ({"library": Library.ANY}, "without limit"),
        ({"compute_dtype": "bfloat16"}, "Computing in bfloat16 is allowed"),
        ({"training": True}, "train mode"),
        ({"structure": ("sorted",)}, "The inputs are always: sorted"),
        ({"baseline": "x"}, "the task's own baseline"),
    ],
)
def test_the_tasks_own_terms_become_rules(changes, said):
    assert said in the_prompt(a_brief(task=replace(TASK, **changes)))


def test_a_function_is_asked_for_by_name():
    task = Task(name="f", source="def double(x):\n    return x * 2\n", entry="double")
    prompt = the_prompt(a_brief(task=task))
    assert "Define the function `double`" in prompt
    assert "Parameters and buffers" not in prompt


@pytest.mark.parametrize(
    ("backend", "said"),
    [("cpu", "from kernelsmith.kernels import cpp"), ("triton", "@triton.jit"),
     ("cuda", "CUDA C++"), ("maca", "64 threads")],
)  # fmt: skip
def test_notes_go_by_backend(backend, said):
    assert said in the_prompt(a_brief(backend=backend))
    assert knowledge.tips("another") == knowledge.tips("null")


def test_notes_and_facts_go_by_device():
    hopper = Device(kind="cuda", name="NVIDIA H200")
    old = Device(kind="cuda", name="Tesla V100-SXM2-16GB")
    assert "TMA" in the_prompt(a_brief(backend="triton", device=hopper))
    assert "4.8 TB/s" in the_prompt(a_brief(backend="triton", device=hopper))
    assert "TMA" not in the_prompt(a_brief(backend="triton", device=old))
    assert hardware.facts(None) == ()
    assert "2.0 TB/s" in hardware.facts(Device(kind="cuda", name="NVIDIA H100 PCIe"))[1]


def test_a_reference_that_is_no_python_is_shown_as_it_is():
    assert "x +* y" in the_prompt(a_brief(task=Task(name="odd", source="x +* y")))


# Cutting


def least(brief, **options):
    """The smallest budget that the brief fits."""
    low, high = 1, 200_000
    while low < high:
        middle = (low + high) // 2
        try:
            messages_of(brief, options=PromptOptions(budget_tokens=middle, **options))
        except TooLong:
            low = middle + 1
        else:
            high = middle
    return low


PIECES = {
    "output": "printed ooo",
    "oldest failure's source": "# program failure 2",
    "newest failure's source": "# program failure 0",
    "worst diverse source": "# program diverse 3",
    "better diverse source": "# program diverse 2",
    "oldest failure": "log 2 ",
    "second best source": "# program top 1",
    "tips": "What tends to help",
    "kernels": "| double_kernel",
    "best source": "# program top 0",
    "best metrics": "## Programs from the archive",
    "newest failure": "## Attempts that failed",
    "parent": "# program parent",
}
"""In the order in which they go."""


def test_parts_go_in_the_stated_order():
    brief = a_full_brief(1500)
    lowest = least(brief)
    gone: list[str] = []
    for budget in range(20_000, lowest - 1, -50):
        prompt = the_prompt(brief, budget_tokens=budget)
        missing = [name for name, text in PIECES.items() if text not in prompt]
        assert set(gone) <= set(missing), "what is cut stays cut"
        gone += [name for name in missing if name not in gone]
    assert gone == list(PIECES)


def test_what_must_be_said_is_never_cut():
    brief = a_full_brief(3000)
    prompt = the_prompt(brief, budget_tokens=least(brief))
    for kept in (
        "return x * 2",
        "## Rules",
        "## What to reply",
        "verdict: passed",
        "too long to be",
    ):
        assert kept in prompt


def test_a_long_log_keeps_its_beginning_and_its_end():
    failed = replace(a_failure(PROGRAM, "first " + "z" * 50_000 + " last"), role=Role.PARENT)
    prompt = the_prompt(a_brief(parent=failed))
    assert "first z" in prompt
    assert "z last" in prompt
    assert "characters left out" in prompt
    assert len(prompt) < 30_000


def test_a_marked_parent_shrinks_to_its_regions():
    long = MARKED + "# frozen " + "f" * 60_000
    prompt = the_prompt(a_brief(parent=an_exemplar(long)), budget_tokens=8000)
    assert "return x + x" in prompt
    assert "# frozen" not in prompt
    assert "these regions alone" in prompt


def test_edits_need_their_parent_in_full():
    brief = a_brief(parent=an_exemplar(PROGRAM + "# " + "f" * 60_000))
    with pytest.raises(TooLong, match="the budget is 8000"):
        the_prompt(brief, budget_tokens=8000, form="diff")


def test_text_cannot_close_its_fence():
    assert fenced("a\n````\nb") == "`````\na\n````\nb\n`````"
    assert fenced("a", "python") == "```python\na\n```"


def test_clipping_says_how_much_is_missing():
    assert clip("short", 10) == "short"
    assert "[... 10 characters left out ...]" in clip("x" * 100, 90)


SIZES = st.integers(0, 6000)


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, st.integers(0, 4), st.integers(0, 3), st.integers(2_000, 40_000))
def test_the_budget_holds_or_it_is_said_that_it_cannot(parent, other, tops, failures, budget):
    brief = a_brief(
        parent=an_exemplar(PROGRAM + "# ü" + "p" * parent),
        inspirations=tuple(
            an_exemplar(f"{PROGRAM}# {n}" + "i" * other, role, 4.0 - n)
            for n, role in enumerate([Role.TOP, Role.DIVERSE, Role.DIVERSE, Role.TOP][:tops])
        ),
        failures=tuple(a_failure(f"{PROGRAM}# f{n}", "w" * other or "w") for n in range(failures)),
    )  # fmt: skip
    options = PromptOptions(budget_tokens=budget)
    try:
        found = messages_of(brief, options=options)
    except TooLong:
        assert budget < 4_000
        return
    assert count_messages(tuple(each.content for each in found)) <= budget
    assert messages_of(brief, options=options) == found
    roomy = messages_of(brief, options=PromptOptions(budget_tokens=budget * 2))
    assert sum(len(m.content) for m in roomy) >= sum(len(m.content) for m in found)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1, max_size=5),
       st.lists(st.integers(0, 4), max_size=12), st.integers(0, 200))  # fmt: skip
def test_fitting_takes_the_fewest_first_cuts(lengths, order, room):
    parts = [
        Part(name=str(n), forms=tuple("x" * each for each in sorted(forms, reverse=True)))
        for n, forms in enumerate(lengths)
    ]
    cuts = [str(n % len(parts)) for n in order]

    def total(chosen):
        return sum(map(len, chosen.values()))

    found = fitted(parts, cuts, lambda chosen: total(chosen) <= room)
    levels = [dict.fromkeys((part.name for part in parts), 0)]
    for name in cuts:
        last = dict(levels[-1])
        last[name] = min(last[name] + 1, len(parts[int(name)].forms) - 1)
        levels.append(last)
    texts = [{p.name: p.forms[each[p.name]] for p in parts} for each in levels]
    assert found == next((each for each in texts if total(each) <= room), None)


def test_every_cut_names_a_part_that_is_there():
    for brief in (a_brief(), a_full_brief(), a_brief(parent=an_exemplar())):
        cuts_for(brief)
        with pytest.raises(TooLong):
            the_prompt(brief, budget_tokens=10)


def test_tokens_are_counted_by_bytes():
    assert count("") == 0
    assert count("abcd") == 2
    assert count("üü") == 2
    assert count_messages(("abc", "abc")) == 2 * (1 + 8)


def test_the_usual_brief_leaves_room_for_programs():
    system, user = messages_of(a_full_brief(), options=PromptOptions())
    assert count_messages((system.content, user.content)) < 6_000
