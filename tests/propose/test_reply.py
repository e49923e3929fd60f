"""What real models write, and what becomes of it."""

import ast
import re

import pytest
from briefs import MARKED, PROGRAM, TASK, a_brief, an_exemplar
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.domain.task import Task
from kernelsmith.propose.prompt_options import Form, PromptOptions
from kernelsmith.propose.prompt_regions import regions_of
from kernelsmith.propose.reply import Unreadable, note_from, source_from

WHOLE = PromptOptions()
DIFF = PromptOptions(form=Form.DIFF)
HELPER = "import torch\n\n\ndef helper(x):\n    return x\n"
OTHER = PROGRAM.replace("x + x", "torch.add(x, x)")
BRIEF = a_brief()


def read(reply, brief=BRIEF, options=WHOLE, **more):
    return source_from(reply, brief, options=options, **more)


def why_not(reply, brief=BRIEF, options=WHOLE, **more):
    with pytest.raises(Unreadable) as caught:
        read(reply, brief, options, **more)
    said = str(caught.value)
    assert said
    assert len(said.splitlines()) == 1
    return said


def either(reply, brief, options, **more):
    """The source, or the reason why there is none."""
    try:
        return read(reply, brief, options, **more), ""
    except Unreadable as error:
        return None, str(error)


FENCE_IN_DOCSTRING = f'''"""How to use it:

```python
ModelNew()(x)
```
"""
{PROGRAM}'''

READABLE = {
    "one fence": f"```python\n{PROGRAM}```",
    "prose around": f"Sure! Here it is:\n\n```python\n{PROGRAM}```\nHope this helps :)",
    "no language": f"```\n{PROGRAM}\n```",
    "wrong language": f"```cpp\n{PROGRAM}```",
    "language and more": f"``` python title=kernel.py\n{PROGRAM}```",
    "tildes": f"~~~py\n{PROGRAM}~~~",
    "longer fence": f"````python\n{PROGRAM}````",
    "CRLF": f"Here:\r\n```python\r\n{PROGRAM}```\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
    "thoughts": f"<think>or ```python\nclass ModelNew: 1\n``` no</think>```python\n{PROGRAM}```",
    "only the thought's end": f"I think so.</think>\n```python\n{PROGRAM}```",
    "helper first": f"```python\n{HELPER}```\nand\n```python\n{PROGRAM}```",
    "helper last": f"```python\n{PROGRAM}```\nUse:\n```bash\npip install torch\n```",
    "no fence": PROGRAM,
    "no fence, prose around": f"Here is the kernel.\n\n{PROGRAM}\nThis adds x to itself.",
    "never closed": f"```python\n{PROGRAM}",
    "byte-order mark": f"\ufeff{PROGRAM}",
    "indented fence": f"  ```python\n{PROGRAM}  ```",
}


@pytest.mark.parametrize("name", READABLE)
def test_a_program_is_found(name):
    assert read(READABLE[name]).strip() == PROGRAM.strip()


def test_a_fence_inside_of_a_docstring_does_not_end_the_program():
    found = read(f"Here:\n```python\n{FENCE_IN_DOCSTRING}```\nDone.")
    assert found.strip() == FENCE_IN_DOCSTRING.strip()


def test_of_two_whole_programs_the_longer_is_taken_and_the_parent_is_not():
    parent = an_exemplar(OTHER)
    reply = f"You had:\n```python\n{OTHER}```\nI suggest:\n```python\n{PROGRAM}```"
    assert len(OTHER) > len(PROGRAM)
    assert read(reply) == OTHER
    assert read(reply, a_brief(parent=parent)) == PROGRAM
    assert read(f"```python\n{OTHER}```", a_brief(parent=parent)) == OTHER


def test_a_program_with_a_mistake_is_the_judges_to_judge():
    broken = PROGRAM.replace("x + x", "x +")
    assert read(f"```python\n{broken}```") == broken


def test_a_plain_source_file_is_taken_as_it_is():
    assert read(FENCE_IN_DOCSTRING) == FENCE_IN_DOCSTRING
    broken = PROGRAM.replace("x + x", "x +")
    assert read(broken) == broken
    assert "cut off" in why_not(broken, cut_off=True)


def test_a_function_is_looked_for_by_its_name():
    task = Task(name="f", source=TASK.source.replace("class Model", "class Other"), entry="double")
    source = "def double(x):\n    return x + x\n"
    assert read(f"```python\n{source}```", a_brief(task=task)) == source
    assert "`double`" in why_not(f"```python\n{PROGRAM}```", a_brief(task=task))


def test_an_entry_that_is_assigned_or_conditional_counts():
    assigned = "class A:\n    pass\n\n\nModelNew = A\n"
    conditional = "if True:\n    class ModelNew:\n        pass\n\nModelNew = ModelNew\n"
    for source in (assigned, conditional):
        assert read(f"```python\n{source}```") == source


def test_a_null_candidate_is_any_expression():
    brief = a_brief(backend="null")
    assert read("```\nx + y\n```", brief).strip() == "x + y"
    assert read("x + y", brief).strip() == "x + y"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "empty"),
        ("  \n\n", "empty"),
        ("I cannot do that.", "no program"),
        (f"```python\n{HELPER}```", "no fenced block defines `ModelNew`"),
        ("```python\nimport torch\n\nclass ModelNew(torch.nn.Module):\n    def for", "cut off"),
        (f"```python\n{HELPER}", "cut off"),
        ("<think>Let me see. ```python", "cut off while thinking"),
        ("<think>all of it</think>", "thoughts and no answer"),
    ],
)
def test_what_holds_no_program_is_rejected_with_the_reason(reply, why):
    assert why in why_not(reply)


def test_a_server_that_says_it_cut_off_is_believed_unless_the_program_is_there():
    assert "cut off" in why_not("```python\nimport torch\n```", cut_off=True)
    assert "cut off" in why_not("", cut_off=True)
    assert read(f"```python\n{PROGRAM}```\nThis is fast bec", cut_off=True) == PROGRAM


@pytest.mark.parametrize(
    "line",
    ["# ... rest of the code unchanged ...", "# ... existing code ...", "// … same as before",
     "    # (rest of the class unchanged)"],
)  # fmt: skip
def test_a_program_that_leaves_parts_out_is_rejected(line):
    assert "leaves parts out" in why_not(f"```python\n{PROGRAM}\n{line}\n```")


@pytest.mark.parametrize("line", ["# the rest is padding", "# sum over the remaining elements"])
def test_ordinary_comments_leave_nothing_out(line):
    assert line in read(f"```python\n{PROGRAM}{line}\n```")


def test_the_note_is_the_idea_or_the_first_line():
    assert note_from("**Idea:** fuse both\n```python\nx\n```") == "fuse both"
    assert note_from("We fuse.\nAnd more.") == "We fuse."
    assert note_from("<think>hm</think>```python\nx\n```") == ""
    assert len(note_from("Idea: " + "x" * 999)) == 200


# Regions


def marked(body="def double(x):\n    return 2 * x"):
    old = "def double(x):\n    return x + x"
    assert old in MARKED
    return MARKED.replace(old, body)


ALONE = "# EVOLVE-BLOCK-START\ndef double(x):\n    return 2 * x\n# EVOLVE-BLOCK-END"
MARKED_BRIEF = a_brief(parent=an_exemplar(MARKED))


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{marked()}```",
        f"```python\n{marked().replace('import torch', 'import torch  ')}\n\n\n```",
        f"```python\n{ALONE}\n```",
        ALONE,
        "```python\n" + re.sub("# EVOLVE-BLOCK-(START|END)", "", marked()) + "```",
    ],
    ids=["whole", "spaces moved", "region alone", "region alone, no fence", "markers lost"],
)  # fmt: skip
def test_an_edit_inside_the_markers_is_put_into_the_parent(reply):
    found = read(reply, MARKED_BRIEF)
    regions = regions_of(found)
    assert regions.frozen == regions_of(MARKED).frozen
    assert "    return 2 * x" in regions.open[0]


def test_an_edit_outside_of_the_markers_is_rejected_and_named():
    moved = marked().replace("return double(x)", "return double(x).relu()")
    said = why_not(f"```python\n{moved}```", MARKED_BRIEF)
    assert "outside the EVOLVE-BLOCK markers" in said
    assert "relu" in said
    added = marked().replace("import torch\n", "import torch\nimport os\n")
    assert "'import os'" in why_not(f"```python\n{added}```", MARKED_BRIEF)


def test_lost_and_added_regions_are_rejected():
    twice = marked() + "# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\n"
    assert "regions, the reply 2" in why_not(f"```python\n{twice}```", MARKED_BRIEF)
    assert "markers are missing" in why_not(f"```python\n{PROGRAM}```", MARKED_BRIEF)


def test_markers_that_do_not_pair_are_no_regions():
    assert regions_of("# EVOLVE-BLOCK-START\nx = 1\n") is None
    assert regions_of("# EVOLVE-BLOCK-END\n# EVOLVE-BLOCK-START\n") is None
    assert regions_of(PROGRAM) is None


SIGN = "# kernelsmith rules: rows width=8\n"
SIGNED_BRIEF = a_brief(parent=an_exemplar(SIGN + MARKED))


def test_the_line_that_signs_for_the_rules_may_be_kept_or_left_and_is_not_passed_on():
    for reply in (marked(), SIGN + marked(), SIGN.replace("8", "4") + marked()):
        assert read(f"```python\n{reply}```", SIGNED_BRIEF).rstrip() == marked().rstrip()
    inside = edit("    return x + x", "    return 2 * x")
    for reply in (inside, edit(f"{SIGN}import torch", "import torch") + inside):
        assert read(reply, SIGNED_BRIEF, DIFF) == MARKED.replace("x + x", "2 * x")


def test_a_copy_of_a_signed_parent_is_that_parent():
    for reply in (MARKED, SIGN + MARKED):
        assert read(f"```python\n{reply}```", SIGNED_BRIEF) == SIGN + MARKED


# Edits


def edit(search, replace):
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


PARENT_BRIEF = a_brief(parent=an_exemplar(PROGRAM))


def test_edits_apply_in_order():
    first = edit("        return x + x", "        y = x + x\n        return y")
    second = edit("        return y", "        return y.contiguous()")
    found = read(f"Idea: two steps\n{first}then\n```\n{second}```", PARENT_BRIEF, DIFF)
    assert "y = x + x\n        return y.contiguous()" in found


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (edit("        return x * x", "        return x"), "no line 'return x * x'; the nearest"),
        (edit("import torch\nclass ModelNew(torch.nn.Module):", "x"), "do not follow each other"),
        (edit("return x + x", "return x"), "edit 1 does not apply"),
        (edit("", "x"), "no SEARCH text"),
        (edit("\n", "x"), "no SEARCH text"),
        (edit("        return x + x", "        return x + x"), "change nothing"),
        ("<<<<<<< SEARCH\nimport torch\n=======\nimport", "cut off inside edit 1"),
        ("<<<<<<< SEARCH\nimport torch\n", "cut off inside edit 1"),
        ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n", "not finished"),
        ("nothing to see", "no program"),
    ],
)
def test_an_edit_that_does_not_apply_is_rejected_with_the_reason(reply, why):
    assert why in why_not(reply, PARENT_BRIEF, DIFF)


def test_an_edit_that_could_mean_two_places_is_rejected():
    twice = PROGRAM + "\n\ndef f(x):\n        return x + x\n"
    brief = a_brief(parent=an_exemplar(twice))
    assert "ambiguous" in why_not(edit("        return x + x", "        return x"), brief, DIFF)


def test_a_whole_program_is_taken_where_edits_were_asked_for():
    assert read(f"```python\n{OTHER}```", PARENT_BRIEF, DIFF) == OTHER


def test_without_a_parent_there_is_nothing_to_edit():
    assert read(f"```python\n{PROGRAM}```", BRIEF, DIFF) == PROGRAM


def test_edits_stay_inside_the_markers():
    inside = edit("    return x + x", "    return 2 * x")
    assert "2 * x" in read(inside, MARKED_BRIEF, DIFF)
    outside = edit("        return double(x)", "        return x")
    assert "outside the EVOLVE-BLOCK" in why_not(outside, MARKED_BRIEF, DIFF)
    marker = edit("# EVOLVE-BLOCK-END", "")
    assert "markers" in why_not(marker, MARKED_BRIEF, DIFF)


# Whatever comes

BRIEFS = st.sampled_from([BRIEF, MARKED_BRIEF, PARENT_BRIEF, a_brief(backend="null")])

CHUNKS = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from(
            ["```", "```python\n", "\n```\n", "~~~", PROGRAM, MARKED, HELPER, "<think>", "</think>",
             "class ModelNew", "\r\n", "# EVOLVE-BLOCK-START\n", "# EVOLVE-BLOCK-END\n",
             "<<<<<<< SEARCH\n", "\n=======\n", "\n>>>>>>> REPLACE\n", '"""', "\0", "Idea: x\n"]
        ),
    ),
    max_size=14,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(CHUNKS, BRIEFS, st.booleans(), st.booleans())
def test_any_reply_gives_a_source_or_a_reason(chunks, brief, diff, cut_off):
    reply = "".join(chunks)
    source, reason = either(reply, brief, DIFF if diff else WHOLE, cut_off=cut_off)
    assert source.strip() if source is not None else reason.strip()
    assert "\n" not in reason
    assert "\n" not in note_from(reply)


PROSE = st.text(
    alphabet=st.characters(blacklist_characters="`~<>\0", blacklist_categories=("Cs",)), max_size=80
)


@settings(max_examples=150, deadline=None)
@given(PROSE, PROSE, st.sampled_from(["python", "", "py", "cpp"]), st.integers(3, 5))
def test_a_fenced_program_survives_any_prose_around_it(before, after, language, ticks):
    fence = "`" * ticks
    reply = f"{before}\n{fence}{language}\n{PROGRAM}{fence}\n{after}"
    assert read(reply) == PROGRAM


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(PROGRAM) - 1))
def test_a_program_cut_anywhere_is_rejected_or_still_whole(at):
    reply = f"Idea: cut\n```python\n{PROGRAM[:at]}"
    source, reason = either(reply, BRIEF, WHOLE, cut_off=True)
    if source is None:
        assert "cut off" in reason
    else:
        ast.parse(source)
        assert "class ModelNew" in source


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    c()", "# note"]), max_size=6)


@settings(max_examples=100, deadline=None)
@given(LINES)
def test_whatever_stands_between_the_markers_nothing_outside_changes(lines):
    reply = f"```python\n{marked(chr(10).join(lines))}```"
    assert regions_of(read(reply, MARKED_BRIEF)).frozen == regions_of(MARKED).frozen
