"""Transposed convolutions of our own, against torch."""

import pytest
import torch
from cpp_cases import argument, found, task, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cpp_family import model, same

from kernelsmith.propose.rules.compiler.cpp_family import family_of
from kernelsmith.propose.rules.graph import NotRecognised


def family(x, weight, pace, edge, more, *, bias=True, apart=(1, 1)):
    """A candidate where the compiler keeps the convolution."""
    dims = len(pace)
    result = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + m
        for n, k, s, p, d, m in zip(x[2:], weight[2:], pace, edge, apart, more, strict=False)
    ]
    shape = (x[0], weight[1], *result)
    settings_ = f"stride={pace}, padding={edge}, output_padding={more}, dilation={apart[:dims]}"
    names = ["x", "w", *(["b"] if bias else [])]
    one = task(
        f"torch.nn.functional.conv_transpose{dims}d(x, w, {'b' if bias else 'None'}, {settings_})",
        given=", ".join(names),
    )
    given_ = [f"arg{number}_1" for number in range(len(names))]
    kept = tuple(torch.empty(shape).stride())
    lists = [str(list(each)) for each in (pace, edge, apart[:dims], more)]
    code = wrapper(f"{', '.join(given_)}", f"""
buf0 = extern_kernels.convolution({', '.join(given_)}, stride={lists[0]}, padding={lists[1]}, dilation={lists[2]}, transposed=True, output_padding={lists[3]}, groups=1{"" if bias else ", bias=None"})
assert_size_stride(buf0, {shape}, {kept}, 'torch.ops.aten.convolution.default')
return (buf0, )
""")  # fmt: skip  # noqa: E501
    arguments = [argument(0, "x", *x), argument(1, "w", *weight)]
    arguments += [argument(2, "b", weight[1])] if bias else []
    return family_of(one, found(one, code, *arguments))


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_transposed_convolution_of_any_form_is_torchs(data):
    dims = data.draw(st.sampled_from([1, 2]), "dims")
    draw = lambda low, high, name: tuple(  # noqa: E731
        data.draw(st.integers(low, high), f"{name} {d}") for d in range(dims)
    )
    pace = draw(1, 3, "stride")
    kernel = tuple(s + e for s, e in zip(pace, draw(0, 3, "more taps"), strict=True))
    edge = tuple(min(e, k - 1) for e, k in zip(draw(0, 3, "padding"), kernel, strict=True))
    more = tuple(min(m, s - 1) for m, s in zip(draw(0, 2, "output padding"), pace, strict=True))
    size = tuple(n + 3 for n in draw(1, 19, "size"))
    inputs = data.draw(st.sampled_from([1, 3, 70]), "inputs")
    outputs = data.draw(st.sampled_from([4, 8, 24]), "outputs")
    bias = data.draw(st.booleans(), "bias")
    x, weight = (2, inputs, *size), (inputs, outputs, *kernel)
    one = family(x, weight, pace, edge, more, bias=bias)
    assert "lib.transposed" in one.source(one.space.defaults)
    torch.manual_seed(0)
    tensors = [torch.randn(x), torch.randn(weight), *([torch.randn(outputs)] if bias else [])]
    with torch.no_grad():
        want = model(one.task.source, "Model")(*(each.double() for each in tensors))
        got = model(one.source(one.space.defaults))(*tensors)
    assert got.is_contiguous()
    scale = (inputs * torch.Size(kernel).numel()) ** 0.5
    torch.testing.assert_close(got.double(), want, rtol=2e-6, atol=2e-6 * scale)


def test_nan_and_infinities_reach_the_outputs_that_they_reach_in_torch():
    one = family((1, 3, 9, 9), (3, 8, 4, 4), (2, 2), (1, 1), (0, 0), bias=False)
    x = torch.randn(1, 3, 9, 9)
    x[0, 1, 0, 8], x[0, 2, 5, 5] = torch.nan, torch.inf
    same(one, one.space.defaults, x, torch.randn(3, 8, 4, 4))


@pytest.mark.parametrize(
    ("weight", "pace", "apart"),
    [((3, 8, 3, 3), (2, 2), (2, 2)),  # taps apart
     ((3, 8, 1, 1), (2, 2), (1, 1)),  # outputs that no weight reaches
     ((3, 7, 4, 4), (2, 2), (1, 1)),  # channels that fill no tile
     ((3, 8, 5, 5), (5, 5), (1, 1))],  # more phases than are written out
)  # fmt: skip
def test_what_the_kernel_is_not_made_for_stays_with_the_library(weight, pace, apart):
    with pytest.raises(NotRecognised, match="leaves all of it to"):
        family((1, 3, 9, 9), weight, pace, (0, 0), (0, 0), bias=False, apart=apart)
