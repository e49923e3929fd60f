"""Kernels of our own in place of small library calls, against torch."""

import pytest
import torch
from cpp_cases import argument, found, task, wrapper
from test_cpp_family import model, same

from kernelsmith.propose.rules.compiler.capture import Captured
from kernelsmith.propose.rules.compiler.cpp_family import family_of
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised


def product(code: str, forward: str, *shapes: tuple[int, ...], given="a, b"):
    one = task(forward, given=given)
    names = [each.strip() for each in given.split(",")]
    arguments = [argument(i, names[i], *shape) for i, shape in enumerate(shapes)]
    return family_of(one, found(one, code, *arguments))


@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (7, 19, 32), (33, 64, 48), (1, 3, 96)])
def test_a_batch_of_products(m, k, n):
    code = wrapper("arg0_1, arg1_1", f"""
buf0 = empty_strided_cpu((5, {m}, {n}), ({m * n}, {n}, 1), torch.float32)
extern_kernels.bmm(arg0_1, arg1_1, out=buf0)
return (buf0, )
""")  # fmt: skip
    family = product(code, "torch.bmm(a, b)", (5, m, k), (5, k, n))
    text = family.source(family.space.defaults)
    assert "torch.bmm(a, b)" in text  # the reference's own, for all other shapes
    assert "lib.product" in text
    same(family, family.space.defaults, torch.randn(5, m, k), torch.randn(5, k, n))


def test_a_product_that_is_wanted_in_columns_stays_with_the_library():
    code = wrapper("arg0_1, arg1_1", """
buf0 = empty_strided_cpu((5, 16, 32), (512, 1, 16), torch.float32)
extern_kernels.bmm(arg0_1, arg1_1, out=buf0)
return (buf0, )
""")  # fmt: skip
    with pytest.raises(NotRecognised, match="leaves all of it to"):
        product(code, "torch.bmm(a, b)", (5, 16, 8), (5, 8, 32))


def test_the_library_writes_into_memory_that_goes_under_another_shape():
    code = wrapper("arg0_1, arg1_1, arg2_1", """
buf0 = empty_strided_cpu((5, 7, 16), (112, 16, 1), torch.float32)
extern_kernels.bmm(arg0_1, arg1_1, out=buf0)
buf1 = empty_strided_cpu((315, ), (1, ), torch.float32)
buf2 = reinterpret_tensor(buf1, (5, 7, 9), (63, 9, 1), 0); del buf1
extern_kernels.bmm(buf0, arg2_1, out=buf2)
return (buf2, )
""")  # fmt: skip
    shapes = (5, 7, 8), (5, 8, 16), (5, 16, 9)
    family = product(code, "torch.bmm(torch.bmm(a, b), c)", *shapes, given="a, b, c")
    assert "out=torch.as_strided(buf1" in family.source(family.space.defaults)
    same(family, family.space.defaults, *(torch.randn(shape) for shape in shapes))


def test_a_linear_layer_packs_its_weight_at_every_call():
    code = wrapper("arg0_1, arg1_1, arg2_1", """
buf0 = empty_strided_cpu((37, 48), (48, 1), torch.float32)
extern_kernels.addmm(arg2_1, arg0_1, reinterpret_tensor(arg1_1, (20, 48), (1, 20), 0), alpha=1, beta=1, out=buf0)
return (buf0, )
""")  # fmt: skip # noqa: E501
    family = product(code, "torch.nn.functional.linear(x, weight, bias)", (37, 20), (48, 20), (48,),
                     given="x, weight, bias")  # fmt: skip
    same(family, family.space.defaults, torch.randn(37, 20), torch.randn(48, 20), torch.randn(48))


def test_running_sums_stay_exact_along_long_rows():
    code = wrapper("arg0_1,", """
buf0 = torch.ops.aten.cumsum.default(arg0_1, dim=-1, dtype=None)
buf1 = buf0
assert_size_stride(buf1, (3, 5003), (5003, 1), 'torch.ops.aten.cumsum.default')
return (buf1, )
""")  # fmt: skip
    one = task("torch.cumsum(x, -1)")
    family = family_of(one, found(one, code, argument(0, "x", 3, 5003)))
    x = torch.rand(3, 5003)
    same(family, family.space.defaults, x)


@pytest.mark.parametrize("n", [3, 64, 67])
def test_the_best_of_a_row_with_ties_and_nan(n):
    code = wrapper("arg0_1,", """
buf0 = torch.ops.aten.topk.default(arg0_1, 2, -1, True, True)
buf1 = buf0[0]
assert_size_stride(buf1, (6, 2), (2, 1), 'torch.ops.aten.topk.default')
buf2 = buf0[1]
assert_size_stride(buf2, (6, 2), (2, 1), 'torch.ops.aten.topk.default')
return (buf1, buf2, )
""")  # fmt: skip
    one = task("tuple(torch.topk(x, 2, -1))")
    form = Form(name="written", source=one.source)
    captured = Captured(
        code=code, arguments=(argument(0, "x", 6, n),), tree="({0}, {1})", outputs=2
    )
    family = family_of(one, [(form, [("default", captured)])])
    same(family, family.space.defaults, torch.randn(6, n))
    x = torch.randn(6, n)
    x[0, 1], x[1, :] = torch.nan, -torch.inf
    x[2, 0] = torch.inf
    values, places = model(family.source(family.space.defaults))(x)
    want = torch.topk(x, 2, -1).values
    torch.testing.assert_close(values, want, equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(x.gather(1, places), want, equal_nan=True, rtol=0, atol=0)
    assert all(len(set(row)) == 2 for row in places.tolist())


@pytest.mark.parametrize(("n", "k"), [(8, 2), (64, 2), (64, 8), (67, 1), (300, 4)])
def test_among_equals_the_same_are_taken_as_by_torch(n, k):
    code = wrapper("arg0_1,", f"""
buf0 = torch.ops.aten.topk.default(arg0_1, {k}, -1, True, True)
buf1 = buf0[1]
return (buf1, )
""")  # fmt: skip
    one = task(f"torch.topk(x, {k}, -1)[1]")
    family = family_of(one, found(one, code, argument(0, "x", 500, n)))
    same(family, family.space.defaults, torch.randint(0, 5, (500, n)).float())
    same(family, family.space.defaults, torch.zeros(500, n))


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3)])
def test_a_convolution_of_each_channel_by_itself(stride, dilation):
    n = (40 - dilation * 3 - 1) // stride + 1
    code = wrapper("arg0_1, arg1_1, arg2_1", f"""
buf0 = extern_kernels.convolution(arg0_1, arg1_1, arg2_1, stride=({stride},), padding=(0,), dilation=({dilation},), transposed=False, output_padding=(0,), groups=6)
assert_size_stride(buf0, (2, 6, {n}), ({6 * n}, {n}, 1), 'torch.ops.aten.convolution.default')
return (buf0, )
""")  # fmt: skip # noqa: E501
    forward = (
        f"torch.nn.functional.conv1d(x, weight, bias, stride={stride}, dilation={dilation}, "
        "groups=6)"
    )
    family = product(code, forward, (2, 6, 40), (6, 1, 4), (6,), given="x, weight, bias")
    same(family, family.space.defaults, torch.randn(2, 6, 40), torch.randn(6, 1, 4),
         torch.randn(6))  # fmt: skip


def test_a_product_of_odd_width_stays_with_the_library():
    code = wrapper("arg0_1, arg1_1", """
buf0 = empty_strided_cpu((5, 7, 9), (63, 9, 1), torch.float32)
extern_kernels.bmm(arg0_1, arg1_1, out=buf0)
return (buf0, )
""")  # fmt: skip
    with pytest.raises(NotRecognised, match=r"leaves all of it to torch\.bmm"):
        product(code, "torch.bmm(a, b)", (5, 7, 8), (5, 8, 9))


@pytest.mark.parametrize(("batch", "m", "k", "n"), [(16, 4, 3, 8), (25, 3, 7, 11), (144, 2, 5, 6)])
def test_many_products_that_lie_interleaved_go_side_by_side(batch, m, k, n):
    code = wrapper("arg0_1, arg1_1", f"""
buf0 = empty_strided_cpu(({batch}, {m}, {n}), ({m * n}, {n}, 1), torch.float32)
extern_kernels.bmm(reinterpret_tensor(arg0_1, ({batch}, {m}, {k}), (1, {k * batch}, {batch}), 0), reinterpret_tensor(arg1_1, ({batch}, {k}, {n}), (1, {n * batch}, {batch}), 0), out=buf0)
return (buf0, )
""")  # fmt: skip # noqa: E501
    forward = "torch.bmm(a.permute(2, 0, 1), b.permute(2, 0, 1))"
    family = product(code, forward, (m, k, batch), (k, n, batch))
    assert "lib.planes" in family.source(family.space.defaults)
    same(family, family.space.defaults, torch.randn(m, k, batch), torch.randn(k, n, batch))


CONVOLUTIONS = [
    # batch, channels in and out, size, kernel, stride, padding, dilation
    (2, 3, 8, (40,), (3,), (1,), (1,), (1,)),
    (1, 5, 12, (38,), (3,), (2,), (1,), (1,)),
    (3, 4, 4, (61,), (4,), (3,), (2,), (3,)),
    (1, 300, 8, (20,), (3,), (1,), (1,), (1,)),
    (2, 3, 8, (11, 13), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 4, 6, (19, 40), (3, 5), (2, 2), (2, 1), (2, 1)),
    (2, 7, 8, (5, 9), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 2, 4, (32, 50), (4, 4), (3, 4), (0, 3), (1, 2)),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("biased", [True, False])
def test_a_convolution_over_neighbours(case, biased):
    batch, inputs, outputs, size, kernel, stride, padding, dilation = case
    weight, bias = torch.randn(outputs, inputs, *kernel), torch.randn(outputs)
    x = torch.randn(batch, inputs, *size)
    conv = getattr(torch.nn.functional, f"conv{len(size)}d")
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    shape = tuple(conv(x, weight, **how).shape)
    given = "x, weight, bias" if biased else "x, weight"
    said = ", ".join(f"{key}={each}" for key, each in how.items())
    code = wrapper("arg0_1, arg1_1, arg2_1" if biased else "arg0_1, arg1_1", f"""
buf0 = extern_kernels.convolution(arg0_1, arg1_1, {"arg2_1" if biased else "None"}, {said}, transposed=False, output_padding={(0,) * len(size)}, groups=1)
assert_size_stride(buf0, {shape}, {torch.empty(shape).stride()}, 'torch.ops.aten.convolution.default')
return (buf0, )
""")  # fmt: skip # noqa: E501
    forward = f"torch.nn.functional.conv{len(size)}d({given}, {said})"
    tensors = [x, weight, *([bias] if biased else [])]
    family = product(code, forward, *(tuple(each.shape) for each in tensors), given=given)
    assert "lib.convolution" in family.source(family.space.defaults)
    same(family, family.space.defaults, *tensors)


def test_a_long_sum_of_a_convolution_is_as_exact_as_the_librarys():
    code = wrapper("arg0_1, arg1_1", """
buf0 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1,), padding=(1,), dilation=(1,), transposed=False, output_padding=(0,), groups=1, bias=None)
assert_size_stride(buf0, (1, 8, 64), (512, 64, 1), 'torch.ops.aten.convolution.default')
return (buf0, )
""")  # fmt: skip # noqa: E501
    shapes = (1, 2048, 64), (8, 2048, 3)
    family = product(code, "torch.nn.functional.conv1d(a, b, padding=1)", *shapes)
    a, b = (torch.rand(shape) for shape in shapes)
    exact = torch.nn.functional.conv1d(a.double(), b.double(), padding=1)
    own = model(family.source(family.space.defaults))(a, b)
    assert (own - exact).abs().max() / exact.abs().max() < 1e-6


def test_a_convolution_behind_a_convolution_is_our_own_too():
    code = wrapper("arg0_1, arg1_1", """
buf0 = extern_kernels.convolution(arg0_1, arg1_1, stride=(1,), padding=(1,), dilation=(1,), transposed=False, output_padding=(0,), groups=1, bias=None)
assert_size_stride(buf0, (1, 8, 30), (240, 30, 1), 'torch.ops.aten.convolution.default')
buf1 = buf0; del buf0  # reuse
buf2 = extern_kernels.convolution(buf1, arg1_1, stride=(2,), padding=(1,), dilation=(1,), transposed=False, output_padding=(0,), groups=1, bias=None)
assert_size_stride(buf2, (1, 8, 15), (120, 15, 1), 'torch.ops.aten.convolution.default')
return (buf2, )
""")  # fmt: skip # noqa: E501
    forward = "torch.conv1d(torch.conv1d(a, b, padding=1), b, stride=2, padding=1)"
    family = product(code, forward, (1, 8, 30), (8, 8, 3))
    text = family.source(family.space.defaults)
    assert "torch.convolution(" not in text
    same(family, family.space.defaults, torch.randn(1, 8, 30), torch.randn(8, 8, 3))
