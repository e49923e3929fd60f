"""Loops that become one: what they compute stays the same, in whatever order steps are taken."""

import re

import pytest
from cpp_cases import loop
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.propose.rules.compiler.cpp_fusion import fused
from kernelsmith.propose.rules.compiler.cpp_parser import parsed
from kernelsmith.propose.rules.compiler.cpp_passes import simplified
from kernelsmith.propose.rules.compiler.cpp_pointers import one_pointer_each, plus, shifted
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Function,
    Gather,
    Let,
    Loop,
    Store,
    walk,
)

LENGTH = 64


def run(function, memory, *, backwards=False):
    """What a kernel leaves in memory, statement by statement."""
    state = {name: list(values) for name, values in memory.items()}

    def value(text, names):
        return eval(re.sub(r"\bint64_t\b|\bfloat\b", "", text), {}, {**state, **names})

    def block(body, names):
        names = dict(names)
        sums: dict = {}
        for each in body:
            match each:
                case Let():
                    names[each.name] = value(each.value, names)
                case Store():
                    state[each.pointer][value(each.index, names)] = value(each.value, names)
                case Accumulator():
                    names[each.name] = sums[each.name] = 0
                case Gather():
                    names[each.name] += value(each.value, names)
                    state.setdefault("sums", {})[each.name] = names[each.name]
                case Loop():
                    steps = range(each.extent)
                    for step in reversed(steps) if backwards else steps:
                        inner = block(each.body, {**names, each.variable: step})
                        names.update((n, v) for n, v in inner.items() if n in names)
        return names

    block(function.body, {})
    state.pop("sums", None)
    return state


def function(*body, pointers="abcdef"):
    return Function(parameters=tuple((each, "float") for each in pointers), body=body)


def over(extent, *body, variable="x0"):
    return Loop(variable=variable, extent=extent, body=body)


def store(pointer, index, value):
    return Store(pointer=pointer, index=index, value=value)


def loops(found):
    return [each for each in walk(found.body) if isinstance(each, Loop)]


MEMORY = {name: [(7 * i + 3 * ord(name)) % 23 for i in range(LENGTH)] for name in "abcdef"}


def check(before, *, count=None):
    after = fused(before)
    assert run(after, MEMORY) == run(before, MEMORY)
    if count is not None:
        assert len(loops(after)) == count
    return after


def test_what_one_loop_writes_and_the_next_reads_stays_in_a_register():
    before = function(
        over(8, Let(name="t0", value="a[x0] * 2"), store("b", "x0", "t0")),
        over(8, Let(name="t1", value="b[x0] + 1"), store("c", "x0", "t1")),
        over(8, store("d", "x0", "b[x0] * c[x0]")),
    )
    after = simplified(check(before, count=1), scratch=frozenset("bc"))
    assert {each.pointer for each in walk(after.body) if isinstance(each, Store)} == {"d"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (store("b", "x0", "a[x0]"), store("c", "x0", "b[x0 + 1]")),
        (store("b", "x0", "a[x0]"), store("c", "x0", "b[3]")),
        (store("b", "x0", "a[1 + x0]"), store("a", "x0", "c[x0]")),
        (store("b", "2 * x0", "a[x0]"), store("b", "1 + x0", "c[x0] + a[x0]")),
        (store("b", "x0", "a[x0]"), store("c", "x0", "b[a[x0]]")),
        (store("b", "x0", "a[x0]"), store("c", "x0", "b[x0 % 4]")),
    ],
)
def test_steps_that_need_other_steps_stay_apart(first, second):
    check(function(over(8, first), over(8, second)), count=2)


def test_parts_of_one_tensor_that_never_meet_do_not_keep_loops_apart():
    before = function(
        over(8, store("b", "x0", "a[x0]")), over(8, store("b", "8 + x0", "a[x0] * 2")),
    )  # fmt: skip
    check(before, count=1)


def test_rows_that_are_written_whole_and_read_whole_are_one_loop_over_rows():
    row = over(4, store("b", "x1 + 4 * x0", "a[x1 + 4 * x0] + 1"), variable="x1")
    total = (
        Accumulator(name="acc0", kind="float"),
        over(4, Gather(name="acc0", value="b[3 + (-x1) + 4 * x0]"), variable="x1"),
        store("c", "x0", "acc0"),
    )
    before = function(over(8, row), over(8, *total))
    after = fused(before)
    assert [each.extent for each in after.body] == [8]
    assert len(loops(after)) == 3, "a row is read turned round: its loops stay two"


def test_a_loop_that_needs_what_another_has_added_up_comes_after_it():
    total = over(8, Gather(name="acc0", value="a[x0]"))
    before = function(
        Accumulator(name="acc0", kind="float"), total, over(8, store("b", "x0", "a[x0] * acc0")),
    )  # fmt: skip
    check(before, count=2)


def test_a_loop_goes_past_what_has_nothing_to_do_with_it_and_no_further():
    first, second = over(8, store("b", "x0", "a[x0]")), over(8, store("c", "x0", "a[x0]"))
    other = over(5, store("d", "x0", "a[x0]"))
    check(function(first, other, second), count=2)
    check(function(first, over(5, store("a", "x0", "d[x0]")), second), count=3)
    check(function(first, Let(name="t1", value="b[2]"), over(8, store("c", "x0", "a[x0] + t1"))),
          count=2)  # fmt: skip
    check(function(first, store("d", "0", "a[0]"), Let(name="t1", value="d[0]"),
                   over(8, store("c", "x0", "a[x0] + t1"))), count=2)  # fmt: skip


def test_loops_that_share_nothing_or_are_of_other_lengths_stay():
    check(function(over(8, store("b", "x0", "a[x0]")), over(8, store("c", "x0", "d[x0]"))), count=2)
    check(function(over(8, store("b", "x0", "a[x0]")), over(9, store("c", "x0", "a[x0]"))), count=2)


def test_who_writes_where_others_may_point_to_stays():
    both = over(8, store("b", "x0", "a[x0]")), over(8, store("c", "x0", "a[x0]"))
    assert len(loops(fused(function(*both), unsure=frozenset("c")))) == 2
    past = both[0], over(5, store("e", "x0", "d[x0]")), both[1]
    assert len(loops(fused(function(*past)))) == 2
    assert len(loops(fused(function(*past), unsure=frozenset("e")))) == 3, "a may be e"


def test_names_that_both_have_are_kept_apart():
    def one(to):
        return over(8, Let(name="t0", value=f"a[x0] + {ord(to)}"), store(to, "x0", "t0 * t0"))

    check(function(one("b"), one("c")), count=1)


INDICES = ["x0", "x1", "x1 + 4 * x0", "x0 + 4 * x1", "16 + x1 + 4 * x0", "2 + x1 + 4 * x0",
           "3 + x0", "2 * x0", "(-x0) + 9", "5"]  # fmt: skip


@st.composite
def statements(draw, inner):
    fitting = [each for each in INDICES if inner or "x1" not in each]
    to, at, a, b = (draw(st.sampled_from(each)) for each in ("bcde", fitting, fitting, fitting))
    one, two = draw(st.sampled_from("abcde")), draw(st.sampled_from("abcde"))
    return store(to, at, f"{one}[{a}] + 2 * {two}[{b}]")


@st.composite
def nests(draw):
    extent = draw(st.sampled_from([4, 4, 4, 3]))
    if draw(st.booleans()):
        return over(extent, *draw(st.lists(statements(False), min_size=1, max_size=2)))
    inside = [
        over(draw(st.sampled_from([4, 4, 2])), *draw(st.lists(statements(True), min_size=1,
                                                              max_size=2)), variable="x1")
        for _ in range(draw(st.integers(1, 2)))
    ]  # fmt: skip
    return over(extent, *inside)


@settings(max_examples=300, deadline=None)
@given(st.lists(nests(), min_size=2, max_size=5))
def test_drawn_kernels_do_the_same_whatever_the_order_of_steps(found):
    before = function(*found)
    wanted = run(before, MEMORY)
    after = fused(before)
    assert run(after, MEMORY) == wanted
    # Threads and lanes take steps in any order: where the loops as given allow that, so do ours.
    apart = all(
        run(function(each), MEMORY) == run(function(each), MEMORY, backwards=True)
        for each in before.body
    )
    if apart and run(before, MEMORY, backwards=True) == wanted:
        assert run(after, MEMORY, backwards=True) == wanted


def test_views_of_one_tensor_go_by_one_pointer():
    before = function(over(8, store("b", "x0", "a[x0] + c[x0]"), store("d", "x0", "b[x0]")))
    memory = {"a": ("one", 0), "b": ("two", 24), "c": ("two", 8), "d": ("three", 0)}
    after, places = one_pointer_each(
        Function(parameters=before.parameters[:4], body=before.body), memory
    )
    assert places == {"a": ("one", 0), "c": ("two", 8), "d": ("three", 0)}
    (only,) = after.body
    assert only.body == (
        store("c", "16 + x0", "a[x0] + c[x0]"), store("d", "x0", "c[16 + x0]"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("index", "offset", "found"),
    [("x0", 3, "3 + x0"), ("2 + x0", 3, "5 + x0"), ("(-3) + x0", 3, "x0"), ("0", 0, "0"),
     ("(-5) + 2 * x0", 3, "(-2) + 2 * x0"), ("4", -4, "0"), ("t1", 7, "7 + t1")],
)  # fmt: skip
def test_an_index_further_on_keeps_its_number_in_front(index, offset, found):
    assert plus(index, offset) == found


def test_an_index_that_is_itself_a_load_goes_by_its_own_pointer():
    by = {"a": ("c", 4), "b": ("c", 8)}
    assert shifted("a[b[x0]] + d[a[1]] * 2", by) == "c[4 + c[8 + x0]] + d[c[5]] * 2"


def test_what_the_compiler_writes_is_read_and_joined():
    text = f"""
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       float* out_ptr1)
{{
    {{
        {loop("x0", 8)}
        {{
            {{
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
                    auto tmp1 = float(tmp0 * tmp0);
                    out_ptr0[static_cast<int64_t>(x0)] = tmp1;
                }}
            }}
        }}
    }}
    {{
        {loop("x0", 8)}
        {{
            {{
                {{
                    auto tmp0 = out_ptr0[static_cast<int64_t>(x0)];
                    auto tmp1 = float(tmp0 + tmp0);
                    out_ptr1[static_cast<int64_t>(x0)] = tmp1;
                }}
            }}
        }}
    }}
}}
"""
    after = simplified(fused(parsed(text)), scratch=frozenset({"out_ptr0"}))
    assert len(loops(after)) == 1
    assert [name for name, _ in after.parameters] == ["in_ptr0", "out_ptr1"]
