"""Captured C++ written as candidates: what they compute, how they vary, what is refused."""

import types

import pytest
import torch
from cpp_cases import (
    COLUMN_SUM,
    FREXP,
    LOOK_UP,
    PADDED,
    SHIFTED,
    SOFTMAX_CODE,
    SOFTMAX_TASK,
    TOTAL,
    argument,
    found,
    loop,
    task,
    wrapper,
)

from kernelsmith.domain.candidate import Candidate
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.propose.rules.compiler.capture import Captured, Skipped
from kernelsmith.propose.rules.compiler.cpp_family import (
    LAYOUTS,
    SCALAR,
    cpp_compiled_family,
    family_of,
)
from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised

RELU = f"""\
extern "C"  void  kernel(float* in_out_ptr0)
{{
    {{
        #pragma GCC ivdep
        {loop("x0", 784)}
        {{
            {{
                {{
                    auto tmp0 = in_out_ptr0[static_cast<int64_t>(x0)];
                    auto tmp1 = tmp0 * (tmp0>0);
                    in_out_ptr0[static_cast<int64_t>(x0)] = tmp1;
                }}
            }}
        }}
    }}
}}
"""


def model(source: str, name: str = "ModelNew"):
    module = types.ModuleType("candidate")
    exec(compile(source, "candidate.py", "exec"), module.__dict__)
    return getattr(module, name)()


def same(family, chosen, *inputs):
    """A candidate and the reference on the same inputs, those included."""
    theirs = [each.clone() for each in inputs]
    ours = [each.clone() for each in inputs]
    with torch.no_grad():
        want = model(family.task.source, "Model")(*theirs)
        got = model(family.source(chosen))(*ours)
    pairs = zip(want if isinstance(want, tuple) else (want,),
                got if isinstance(got, tuple) else (got,), strict=True)  # fmt: skip
    for one, other in [*pairs, *zip(theirs, ours, strict=True)]:
        assert one.dtype == other.dtype
        assert one.stride() == other.stride()
        known = one[one.isfinite()].abs() if one.is_floating_point() else one.new_zeros(0)
        scale = max(1.0, known.max().item()) if known.numel() else 1.0
        torch.testing.assert_close(other, one, rtol=2e-6, atol=2e-6 * scale, equal_nan=True)


@pytest.fixture(scope="module")
def softmax():
    return family_of(SOFTMAX_TASK, found(SOFTMAX_TASK, SOFTMAX_CODE, argument(0, "x", 5, 67)))


def test_a_captured_kernel_computes_what_the_reference_does(softmax):
    same(softmax, softmax.space.defaults, torch.randn(5, 67))


def test_nan_and_infinities_go_through(softmax):
    x = torch.randn(5, 67)
    x[0, 3], x[1, 4], x[2, :] = torch.nan, torch.inf, -torch.inf
    same(softmax, softmax.space.defaults, x)


@pytest.mark.parametrize("inputs", [(7, 67), (5, 66)])
def test_other_shapes_go_through_the_reference(softmax, inputs):
    same(softmax, softmax.space.defaults, torch.randn(*inputs))


def test_other_strides_and_types_go_through_the_reference(softmax):
    same(softmax, softmax.space.defaults, torch.randn(67, 5).t())
    same(softmax, softmax.space.defaults, torch.randn(5, 67).double())


def test_memory_between_the_loops_of_a_row_is_gone(softmax):
    text = softmax.source(softmax.space.defaults)
    assert text.count("torch.empty") == 1
    assert "(5, 1)" not in text


def test_nothing_of_the_compiler_is_left(softmax):
    text = softmax.source(softmax.space.defaults)
    assert inspect_source(Candidate(backend="cpu", source=text), SOFTMAX_TASK) is None
    for word in ("_inductor", "at::", "c10::", "static_cast", "#include <torch"):
        assert word not in text


def test_the_same_choice_gives_the_same_text_and_owns_it(softmax):
    chosen = {**softmax.space.defaults, "lanes": "16"}
    text = softmax.source(chosen)
    assert text == softmax.source(dict(reversed(chosen.items())))
    assert owned(softmax, text) == chosen
    assert owned(softmax, text.replace("<16>", "<8>")) is None


def test_every_value_of_every_parameter_changes_the_text_and_stays_right(softmax):
    texts = set()
    x = torch.randn(5, 67)
    for each in softmax.space.parameters:
        for choice in each.choices:
            chosen = {**softmax.space.defaults, each.name: choice}
            texts.add(softmax.source(chosen).partition("EVOLVE-BLOCK-START")[2])
            if choice != each.default:
                same(softmax, chosen, x)
    wanted = 1 + sum(len(each.choices) - 1 for each in softmax.space.parameters)
    assert len(texts) == wanted


def test_words_say_what_is_tried(softmax):
    assert "one fused kernel" in softmax.words(softmax.space.defaults)
    assert "math=libm" in softmax.words({**softmax.space.defaults, "math": "libm"})


def column_sum():
    one = task("-x.sum(0)", inputs="torch.randn(9, 70)")
    code = wrapper("arg0_1,", """
buf0 = empty_strided_cpu((70, ), (1, ), torch.float32)
cpp_fused_neg_sum_0(arg0_1, buf0)
return (buf0, )
""", cpp_fused_neg_sum_0=COLUMN_SUM)  # fmt: skip
    return family_of(one, found(one, code, argument(0, "x", 9, 70)))


def test_columns_are_gathered_side_by_side():
    family = column_sum()
    assert "in_ptr0[x0 + 70 * x1]" in family.source(family.space.defaults)
    assert "for (int64_t from = 0; from < 70; from += 64)" in family.source(family.space.defaults)
    for chosen in family.space.starts:
        same(family, chosen, torch.randn(9, 70))


def test_a_sum_over_everything_takes_all_threads_and_is_the_same_on_any_number():
    one = task("x.mean()", inputs="torch.randn(30000)")
    code = wrapper("arg0_1,", """
buf0 = empty_strided_cpu((), (), torch.float32)
buf1 = buf0; del buf0  # reuse
cpp_fused_mean_0(buf1, arg0_1)
return (buf1, )
""", cpp_fused_mean_0=TOTAL)  # fmt: skip
    family = family_of(one, found(one, code, argument(0, "x", 30000)))
    chosen = {**family.space.defaults, "serial_below": "0"}
    assert "part < 64" in family.source(chosen)
    same(family, chosen, torch.randn(30000) + 3)
    built = model(family.source(chosen))
    x = torch.randn(30000)
    assert len({built(x).item() for _ in range(20)}) == 1


def test_rows_on_one_thread_use_the_lanes_of_their_own_loop(softmax):
    text = softmax.source({**softmax.space.defaults, "threads": "1"})
    assert ".add(k, " in text
    assert " % " not in text


def test_an_index_out_of_range_is_an_error_and_not_a_crash():
    one = task("torch.nn.functional.embedding(ids, table) * 2.5", given="ids, table",
               inputs="torch.randint(0, 11, (6,)), torch.randn(11, 20)")  # fmt: skip
    code = wrapper("arg0_1, arg1_1", """
buf0 = empty_strided_cpu((6, 20), (20, 1), torch.float32)
cpp_fused_embedding_mul_0(arg0_1, arg1_1, buf0)
return (buf0, )
""", cpp_fused_embedding_mul_0=LOOK_UP)  # fmt: skip
    ids = argument(0, "ids", 6, dtype="int64")
    family = family_of(one, found(one, code, ids, argument(1, "table", 11, 20)))
    same(family, family.space.defaults, torch.randint(0, 11, (6,)), torch.randn(11, 20))
    with pytest.raises(IndexError, match="out of range"):
        model(family.source(family.space.defaults))(torch.full((6,), 11), torch.randn(11, 20))


@pytest.mark.parametrize("sign", ["", "-", "+"])
def test_padding_reads_nothing_outside(sign):
    value = f"float('{sign}inf')" if sign else "0.0"
    one = task(f"torch.nn.functional.pad(x, (3, 0), value={value})", inputs="torch.randn(4, 10)")
    zero = "static_cast<decltype(tmp4())>(0.0)"
    assert zero in PADDED
    limit = f"{sign.strip('+')}std::numeric_limits<decltype(tmp4())>::infinity()"
    padded = PADDED.replace(zero, limit) if sign else PADDED
    code = wrapper("arg0_1,", """
buf0 = empty_strided_cpu((4, 13), (13, 1), torch.float32)
cpp_fused_constant_pad_nd_0(arg0_1, buf0)
return (buf0, )
""", cpp_fused_constant_pad_nd_0=padded)  # fmt: skip
    family = family_of(one, found(one, code, argument(0, "x", 4, 10)))
    same(family, family.space.defaults, torch.randn(4, 10))


def test_a_form_that_cannot_be_written_is_named_with_the_reason(softmax):
    other = Form(name="other", source=SOFTMAX_TASK.source)
    captured = [*found(SOFTMAX_TASK, SOFTMAX_CODE, argument(0, "x", 5, 67)),
                (other, [("default", Skipped(reason="too hard"))])]  # fmt: skip
    family = family_of(SOFTMAX_TASK, captured)
    assert ("other, library=torch", "too hard") in family.skipped
    with pytest.raises(NotRecognised, match="no form 'other'"):
        family.source({**family.space.defaults, "form": "other"})


def test_a_call_without_kernels_is_refused_with_the_library_named():
    one = task("torch.linalg.inv(x)", inputs="torch.randn(4, 4)")
    code = wrapper("arg0_1,", """
buf0 = torch.ops.aten.linalg_inv_ex.default(arg0_1)
buf1 = buf0[0]
return (buf1, )
""")  # fmt: skip
    with pytest.raises(NotRecognised, match=r"leaves all of it to .*linalg_inv_ex"):
        family_of(one, found(one, code, argument(0, "x", 4, 4)))


@pytest.mark.slow
def test_a_real_capture_on_this_machine():
    one = task("torch.relu(x * scale) + x.mean(-1, keepdim=True)", given="x, scale=0.5")
    family = cpp_compiled_family(one)
    for chosen in family.space.starts:
        same(family, chosen, torch.randn(5, 67))


def test_numbers_come_apart_into_mantissa_and_exponent():
    one = task("tuple(torch.frexp(x))")
    code = wrapper("arg0_1,", """
buf0 = empty_strided_cpu((5, 67), (67, 1), torch.float32)
buf1 = empty_strided_cpu((5, 67), (67, 1), torch.int32)
cpp_fused_frexp_0(arg0_1, buf0, buf1)
return (buf0, buf1, )
""", cpp_fused_frexp_0=FREXP)  # fmt: skip
    form = Form(name="written", source=one.source)
    captured = Captured(
        code=code, arguments=(argument(0, "x", 5, 67),), tree="({0}, {1})", outputs=2
    )
    family = family_of(one, [(form, [("default", captured)])])
    x = torch.randn(5, 67) * torch.logspace(-44, 38, 335).view(5, 67)
    x[0, :2] = 0.0
    same(family, family.space.defaults, x)


def test_bits_move_right_by_as_far_as_there_are_bits():
    one = task("x >> by", given="x, by")
    code = wrapper("arg0_1, arg1_1", """
buf0 = empty_strided_cpu((2560,), (1,), torch.uint8)
cpp_fused_shift_0(arg0_1, arg1_1, buf0)
return (buf0, )
""", cpp_fused_shift_0=SHIFTED)  # fmt: skip
    given = [argument(at, name, 2560, dtype="uint8") for at, name in enumerate(("x", "by"))]
    family = family_of(one, found(one, code, *given))
    x = torch.arange(256, dtype=torch.uint8).repeat(10)
    same(family, family.space.defaults, x, torch.arange(10, dtype=torch.uint8).repeat(256))


def convolved(stride: str) -> Captured:
    """A convolution left to the library, whose result has these strides, and a ReLU behind it."""
    code = wrapper("arg0_1, arg1_1", f"""
buf0 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1, bias=None)
assert_size_stride(buf0, (1, 4, 14, 14), {stride}, 'torch.ops.aten.convolution.default')
buf1 = buf0; del buf0  # reuse
cpp_fused_relu_0(buf1)
return (buf1, )
""", cpp_fused_relu_0=RELU)  # fmt: skip # noqa: E501
    given = argument(0, "x", 1, 3, 16, 16), argument(1, "weight", 4, 3, 3, 3)
    return Captured(code=code, arguments=given)


def test_where_channels_lie_is_a_choice_and_equal_ones_are_one():
    one = task("torch.relu(torch.conv2d(x, weight))", given="x, weight")
    form = Form(name="written", source=one.source)
    last, first = convolved("(784, 1, 56, 4)"), convolved("(784, 196, 14, 1)")
    family = family_of(
        one, [(form, [("default", last)])],
        layouts={"as_given": [("default", first)], "channels_last": [("default", last)]},
    )  # fmt: skip
    (layout,) = (each for each in family.space.parameters if each.name == "layout")
    assert set(layout.choices) == {"as_given", "channels_last"}
    assert layout.default == "as_given"  # there the convolution is our own
    texts = {
        each: family.source({**family.space.defaults, "layout": each}) for each in layout.choices
    }
    assert "lib.convolution" in texts["as_given"]
    assert "lib.convolution" not in texts["channels_last"]
    x, weight = torch.randn(1, 3, 16, 16), torch.randn(4, 3, 3, 3)
    for text in texts.values():
        torch.testing.assert_close(model(text)(x, weight), torch.relu(torch.conv2d(x, weight)))


def test_only_convolutions_are_asked_for_in_other_layouts():
    asked = []

    def ask(task, requests):
        asked.extend(each.options for each in requests)
        return [Skipped(reason="not today")] * len(requests)

    for forward in ("torch.conv2d(x, x)", "torch.relu(x)"):
        with pytest.raises(NotRecognised, match="not today"):
            cpp_compiled_family(task(forward), capture=ask)
    assert asked == [SCALAR, *LAYOUTS.values(), SCALAR]


@pytest.mark.slow
def test_a_variance_over_many_elements_is_captured_in_two_sweeps():
    one = task("torch.var(x, (1, 2))", inputs="torch.randn(6, 40, 50)")
    family = cpp_compiled_family(one)
    same(family, family.space.defaults, torch.randn(6, 40, 50) + 100)
