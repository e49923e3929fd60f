"""The compiler's scalar C++, read and made simple."""

import pytest
from cpp_cases import COLUMN_SUM, LOOK_UP, PADDED, SOFTMAX, TOTAL, loop

from kernelsmith.propose.rules.compiler.cpp_parser import parsed
from kernelsmith.propose.rules.compiler.cpp_passes import simplified
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Check,
    Gather,
    Let,
    Local,
    Loop,
    Masked,
    Store,
    stored,
    stride,
    walk,
)
from kernelsmith.propose.rules.graph import NotRecognised


def only(function, kind):
    return [each for each in walk(function.body) if isinstance(each, kind)]


def test_loops_and_accumulators_are_read():
    function = parsed(SOFTMAX)
    assert function.kinds == dict.fromkeys(("in_ptr0", "out_ptr0", "out_ptr1", "out_ptr2"), "float")
    assert [each.extent for each in only(function, Loop)] == [5, 67, 67, 67]
    assert [each.fold for each in only(function, Accumulator)] == ["max", "sum"]
    assert only(function, Local) == [Local(name="local_buffer_data_0", kind="float", size=67)]


def test_every_value_has_a_name_of_its_own():
    names = [each.name for each in only(parsed(SOFTMAX), Let)]
    assert len(set(names)) == len(names)


def test_a_sum_in_cascades_is_a_sum():
    (total,) = only(parsed(TOTAL), Accumulator)
    assert (total.fold, total.exact) == ("sum", True)


def test_two_names_of_one_pointer_become_one():
    assert stored(parsed(TOTAL).body) == {"in_out_ptr0"}


def test_a_masked_value_keeps_its_condition():
    (masked,) = only(parsed(PADDED), Masked)
    assert (masked.kind, masked.other) == ("float", "0.0f")
    assert masked.body


MASKED = f"""\
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{{
    {loop("x0", 8)}
    {{
        auto tmp0 = x0;
        auto tmp1 = static_cast<int64_t>(4);
        auto tmp2 = tmp0 >= tmp1;
        auto tmp3 = in_ptr0[static_cast<int64_t>(x0)];
        auto tmp4 = [&]
        {{
            auto tmp5 = VALUE;
            return tmp5;
        }}
        ;
        auto tmp6 = tmp2 ? tmp4() : static_cast<decltype(tmp4())>(0.0);
        auto tmp7 = tmp6 + tmp3;
        out_ptr0[static_cast<int64_t>(x0)] = tmp7;
    }}
}}
"""


def test_a_masked_constant_is_written_where_it_stood():
    (masked,) = only(simplified(parsed(MASKED.replace("VALUE", "static_cast<float>(1.0)"))), Masked)
    assert (masked.body, masked.value) == ((), "1.0f")


def test_a_masked_value_that_is_there_already_gets_its_name():
    function = simplified(parsed(MASKED.replace("VALUE", "in_ptr0[static_cast<int64_t>(x0)]")))
    (masked,) = only(function, Masked)
    (load,) = [each for each in only(function, Let) if "in_ptr0[" in each.value]
    assert (masked.body, masked.value) == ((), load.name)


def test_what_a_row_hands_on_does_not_go_through_memory():
    function = simplified(parsed(SOFTMAX), scratch=frozenset({"out_ptr0", "out_ptr1"}))
    assert [name for name, _ in function.parameters] == ["in_ptr0", "out_ptr2"]
    assert {each.pointer for each in only(function, Store)} == {"local_buffer_data_0", "out_ptr2"}


def test_memory_that_somebody_reads_later_is_written():
    function = simplified(parsed(SOFTMAX), scratch=frozenset({"out_ptr0"}))
    assert "out_ptr1" in stored(function.body)


def test_what_a_loop_does_not_change_is_computed_before_it():
    function = simplified(parsed(LOOK_UP))
    (outer,) = function.body
    assert [type(each) for each in outer.body] == [Let, Check, Loop]
    (inner,) = [each for each in outer.body if isinstance(each, Loop)]
    assert all("in_ptr0[" not in str(each) for each in inner.body)


def test_a_load_stays_behind_a_store_that_may_change_it():
    text = LOOK_UP.replace(
        "in_ptr0[static_cast<int64_t>(x0)]", "out_ptr0[static_cast<int64_t>(x0)]"
    )
    (outer,) = simplified(parsed(text)).body
    (inner,) = [each for each in outer.body if isinstance(each, Loop)]
    assert any("out_ptr0[x0]" in each.value for each in inner.body if isinstance(each, Let))


def test_constants_stand_where_they_are_needed():
    function = simplified(parsed(TOTAL))
    assert any("30000.0f" in each.value for each in only(function, Let))
    assert not any(each.value == "30000.0f" for each in only(function, Let))


def test_a_column_is_gathered_without_casts_that_say_nothing():
    function = simplified(parsed(COLUMN_SUM))
    values = [each.value for each in only(function, Let)]
    assert values == ["in_ptr0[x0 + 70 * x1]", "-t0"]
    assert [each.value for each in only(function, Gather)] == ["t1"]


@pytest.mark.parametrize(
    ("index", "variable", "steps"),
    [("x1 + 67 * x0", "x1", 1), ("x1 + 67 * x0", "x0", 67), ("x1 + 67 * x0", "x2", 0),
     ("x1 + 20 * t0", "x1", 1), ("(x1 / 2) + x0", "x1", None)],
)  # fmt: skip
def test_strides_are_told_from_indices(index, variable, steps):
    assert stride(index, variable) == steps


@pytest.mark.parametrize(
    ("line", "why"),
    [("auto tmp1 = calc_igamma(tmp0, tmp0);", "calc_igamma"),
     ("at::vec::Vectorized<float> tmp1 = 0;", "at::vec"),
     ("auto tmp1 = c10::convert<at::Float8_e5m2>(tmp0);", "Float8")],
)  # fmt: skip
def test_what_needs_torch_is_refused_by_name(line, why):
    before = "auto tmp1 = decltype(tmp0)(-tmp0);"
    with pytest.raises(NotRecognised, match=why):
        parsed(COLUMN_SUM.replace(before, line))


def test_a_loop_of_open_length_is_refused():
    with pytest.raises(NotRecognised, match="rules do not know `for"):
        parsed(COLUMN_SUM.replace(loop("x1", 9), loop("x1", 9).replace("9L", "ks0")))
