"""Inductor's text, read into typed steps and plain kernels."""

import ast
import dataclasses

import pytest
from compiled_cases import ARGUMENTS, captured

from kernelsmith.propose.rules.compiler.call import (
    Alias,
    Allocate,
    Call,
    Constant,
    Drop,
    Launch,
    Library,
    Named,
    Part,
    Viewed,
)
from kernelsmith.propose.rules.compiler.capture import Skipped
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.compiler.steps import read_wrapper


def read(name: str, **changes: object) -> Call:
    found = read_call(captured(name, **changes))
    assert isinstance(found, Call), found
    return found


def reason(name: str, **changes: object) -> str:
    found = read_call(captured(name, **changes))
    assert isinstance(found, Skipped)
    return found.reason


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_text_is_read(name):
    read(name)


def test_a_product_and_its_epilogue_are_a_library_call_and_a_launch():
    call = read("linear_gelu")
    kinds = [type(step) for step in call.steps if not isinstance(step, Drop)]
    assert kinds == [Allocate, Library, Alias, Launch]
    product = next(step for step in call.steps if isinstance(step, Library))
    assert product.target == "torch.mm"
    assert product.operands == (
        Named(name="arg2_1"),
        Viewed(name="arg0_1", shape=(48, 768), stride=(1, 48)),
    )
    assert product.out == "buf0"


def test_a_kernel_says_what_its_launch_needs():
    (kernel,) = read("linear_gelu").kernels
    assert kernel.name == "addmm_gelu"
    assert kernel.schedule == "pointwise"
    assert kernel.sizes == (("x", 196608),)
    assert kernel.blocks == ("XBLOCK",)
    assert kernel.grid == "Grid1D"
    assert kernel.operators == ("aten.addmm", "aten.gelu")
    assert dict(kernel.defaults) == {"XBLOCK": 1024, "num_warps": 4, "num_stages": 1}


def test_what_the_compiler_measured_goes_before_what_is_guessed():
    tuned = (("triton_poi_fused_addmm_gelu_0", (("XBLOCK", 512), ("num_warps", 8))),)
    (kernel,) = read("linear_gelu", tuned=tuned).kernels
    assert dict(kernel.defaults) == {"XBLOCK": 512, "num_warps": 8, "num_stages": 1}


def test_several_results_of_a_library_are_parts_with_their_layout():
    parts = [step for step in read("topk_router").steps if isinstance(step, Part)]
    assert [(part.of, part.index, part.stride) for part in parts] == [
        ("buf3", 0, (2, 1)),
        ("buf3", 1, (2, 1)),
    ]


def test_the_layout_that_a_convolution_must_have_is_kept():
    (convolution,) = [s for s in read("depthwise_conv1d").steps if isinstance(s, Library)]
    assert convolution.target == "torch.convolution"
    assert convolution.shape == (2, 256, 512)
    assert dict(convolution.keywords)["groups"] == 256


def test_a_scan_that_adds_is_a_cumulative_sum():
    call = read("cumulative_sum")
    assert call.kernels[0].schedule == "scan"
    assert "tl.cumsum(" in call.kernels[0].text
    assert "associative_scan" not in call.kernels[0].text


def test_a_template_keeps_its_tiles_and_its_grid():
    call = read("linear_gelu", option="_autotune")
    (kernel,) = call.kernels
    assert kernel.schedule == "template"
    assert kernel.grid == "FixedGrid"
    assert dict(kernel.fixed)["BLOCK_M"] == "32"
    assert dict(kernel.defaults)["num_stages"] == 2
    (launch,) = [step for step in call.steps if isinstance(step, Launch)]
    assert launch.operands[-3:] == (192, 1, 1)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_nothing_of_the_compilers_own_library_is_left(name):
    call = read(name)
    for text in [call.prelude, *[kernel.text for kernel in call.kernels]]:
        ast.parse(text)
        for word in ("triton_helpers", "tl_math", "libdevice", "_inductor", "triton_heuristics"):
            assert word not in text


def test_values_that_nobody_reads_are_left_out():
    (kernel,) = read("linear_gelu").kernels
    assert "xmask" not in kernel.text
    assert "tl.full" not in kernel.text


def test_conditions_are_what_was_folded_in():
    call = read("linear_gelu", numbers=(("s", "3.14"),), training=False)
    assert call.conditions == (("s", "3.14"), ("self.training", "False"))
    assert call.made_with == (("inputs", "48"), ("outputs", "768"))


def test_another_number_of_arguments_is_refused():
    arguments = captured("linear_gelu").arguments[:2]
    assert "takes 3 arguments where the module has 2" in reason("linear_gelu", arguments=arguments)


def test_another_shape_is_refused():
    first, *rest = captured("linear_gelu").arguments
    wrong = (dataclasses.replace(first, shape=(5, 5)), *rest)
    assert "takes arg0_1 as (768, 48)" in reason("linear_gelu", arguments=wrong)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("extern_kernels.mm(", "extern_kernels.own_mm(", "its own `extern_kernels.own_mm`"),
        ("extern_kernels.mm(", "inductor_ops.seeds(", "random numbers"),
        ("'Grid1D'", "'CooperativeReductionGrid'", "the grid CooperativeReductionGrid"),
        ("libdevice.erf", "triton_helpers.frobnicate", "own triton_helpers.frobnicate"),
        ("triton_heuristics.pointwise", "triton_heuristics.split_scan", "scheduled by split_scan"),
        ("(256, 768), (768, 1), torch", "(256, s0), (s0, 1), torch", "open"),
        ("del arg2_1", "assert arg2_1", "does `assert arg2_1`"),
    ],
)
def test_what_cannot_stand_alone_is_skipped_with_the_reason(before, after, why):
    code = captured("linear_gelu").code
    assert before in code
    assert why in reason("linear_gelu", code=code.replace(before, after))


def test_constants_of_the_compiler_are_tensors_like_others():
    code = captured("linear_gelu").code.replace(".run(buf1, arg1_1,", ".run(buf1, _constant0,")
    held = Constant(
        name="_constant0", shape=(768,), stride=(1,), dtype="float32", values=(0.5,) * 768
    )
    call = read("linear_gelu", code=code, constants=(held,))
    (launch,) = [step for step in call.steps if isinstance(step, Launch)]
    assert launch.operands[1] == Named(name="_constant0")


def test_a_plain_call_function_reads_like_a_method():
    code = captured("linear_gelu").code
    start = code.index("class Runner")
    body = code[code.index("    def call(self, args):") :]
    plain = "\n".join(line.removeprefix("    ") for line in body.splitlines())
    changed = code[:start] + plain.replace("def call(self, args)", "def call(args)")
    assert read("linear_gelu", code=changed) == read("linear_gelu")


def test_two_products_in_one_call_are_two_steps():
    code = captured("linear_gelu").code.replace(
        "extern_kernels.mm(arg2_1, reinterpret_tensor(arg0_1, (48, 768), (1, 48), 0), out=buf0)",
        "extern_kernels._mm_plus_mm(arg2_1, arg0_1, arg2_1, arg0_1, out=buf0)",
    )
    targets = [
        step.target for step in read("linear_gelu", code=code).steps if isinstance(step, Library)
    ]
    assert targets == ["torch.mm", "torch.addmm"]


@pytest.mark.parametrize(
    ("returned", "copied"),
    [
        ("reinterpret_tensor(buf0, (2, 3, 1, 8), (32, 8, 64, 1), 0)", True),
        ("reinterpret_tensor(buf0, (2, 4, 1, 8), (32, 8, 64, 1), 0)", False),
        ("reinterpret_tensor(buf0, (2, 3, 8), (32, 8, 1), 0)", False),
        ("reinterpret_tensor(arg0_1, (2, 3, 1, 8), (32, 8, 64, 1), 0)", False),
    ],
    ids=["gappy with a dimension of one", "dense", "gappy without", "of an input"],
)
def test_a_part_is_returned_as_a_copy_where_its_strides_are_a_guess(returned, copied):
    wrapper = read_wrapper(
        ast.parse(
            "def call(args):\n"
            "    arg0_1, = args\n"
            "    buf0 = empty_strided_cpu((2, 4, 8), (32, 8, 1), torch.float32)\n"
            f"    return ({returned}, )\n"
        ),
        (),
    )
    (result,) = wrapper.results
    last = wrapper.steps[-1]
    assert isinstance(result, Named if copied else Viewed)
    assert isinstance(last, Library if copied else Allocate)
    if copied:
        assert last.result == result.name
