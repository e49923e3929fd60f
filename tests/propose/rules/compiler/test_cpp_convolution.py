"""The bias of convolutions of our own: read where it lies side by side, else the library's."""

import pytest
import torch
from cpp_cases import argument, found, task, wrapper
from test_cpp_family import same

from kernelsmith.propose.rules.compiler.call import Argument
from kernelsmith.propose.rules.compiler.cpp_family import family_of
from kernelsmith.propose.rules.graph import NotRecognised

FORMS = {
    "convolution": (
        (2, 3, 9, 11), (8, 3, 3, 3), "torch.conv2d(x, w, {})",
        "stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=False, "
        "output_padding=(0, 0), groups=1",
    ),
    "transposed": (
        (2, 3, 9, 11), (3, 8, 3, 3), "torch.conv_transpose2d(x, w, {})",
        "stride=(1, 1), padding=(0, 0), dilation=(1, 1), transposed=True, "
        "output_padding=(0, 0), groups=1",
    ),
    "depthwise": (
        (2, 8, 40), (8, 1, 4), "torch.conv1d(x, w, {}, groups=8)",
        "stride=(1,), padding=(0,), dilation=(1,), transposed=False, "
        "output_padding=(0,), groups=8",
    ),
}  # fmt: skip


def family(form: str, bias: Argument, *, operand="arg2_1", forward="b", before=""):
    """A candidate where the compiler keeps the convolution and hands it this bias."""
    x, weight, text, how = FORMS[form]
    one = task(text.format(forward), given="x, w, b")
    code = wrapper("arg0_1, arg1_1, arg2_1", f"""
{before}
buf0 = extern_kernels.convolution(arg0_1, arg1_1, {operand}, {how})
return (buf0, )
""")  # fmt: skip
    return family_of(one, found(one, code, argument(0, "x", *x), argument(1, "w", *weight), bias))


def inputs(form: str, bias: torch.Tensor):
    x, weight, *_ = FORMS[form]
    return torch.randn(x), torch.randn(weight), bias


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stride", [2, 0])
def test_a_bias_that_does_not_lie_side_by_side_stays_with_the_library(form, stride):
    bias = Argument(name="arg2_1", path="b", shape=(8,), stride=(stride,))
    with pytest.raises(NotRecognised, match="leaves all of it to"):
        family(form, bias)


@pytest.mark.parametrize("form", FORMS)
def test_a_bias_of_which_nothing_is_known_is_not_left_out(form):
    with pytest.raises(NotRecognised, match="leaves all of it to"):
        family(form, argument(2, "b", 8), operand="buf1", forward="torch.sin(b)",
               before="buf1 = torch.ops.aten.sin.default(arg2_1)")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_bias_in_the_middle_of_a_tensor_is_read_there(form):
    one = family(form, argument(2, "b", 20), forward="b[5:13]",
                 operand="reinterpret_tensor(arg2_1, (8, ), (1, ), 5)")  # fmt: skip
    assert f"lib.{form}" in one.source(one.space.defaults)
    same(one, one.space.defaults, *inputs(form, torch.randn(20)))
