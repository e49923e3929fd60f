"""Products of a call replaced by our own kernels, with what follows fused in."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from product_calls import (
    BIAS_RELU,
    K,
    M,
    N,
    a_convolution,
    an_argument,
    linear_relu,
    made,
    pointwise,
)
from product_interpreter import run

from kernelsmith.propose.rules.compiler.call import Call, Drop, Launch, Library, Named, Viewed
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import SEEDS, best_way
from kernelsmith.propose.rules.products.replace import (
    library_share,
    product_parameters,
    product_seeds,
    product_sites,
    replaced,
)


def chosen(call, **changes):
    """The defaults of a call, changed."""
    return {each.name: each.default for each in product_parameters(call)} | changes


def launched(call):
    """Names of the kernels that a call launches, in order."""
    return [each.kernel for each in call.steps if isinstance(each, Launch)]


def result(interpreting, call, given, wanted):
    """What a call computes, in the interpreter."""
    return interpreting.submit(
        run, call.kernels, call.steps, given, wanted, call.prelude
    ).result()  # fmt: skip


def a_linear(seed=0):
    """Inputs of ``linear_relu`` and its exact result."""
    rng = np.random.default_rng(seed)
    given = {"x": rng.normal(size=(M, K)), "w": rng.normal(size=(N, K)), "bias": rng.normal(size=N)}
    exact = np.maximum(given["x"] @ given["w"].T + given["bias"], 0) / 2
    return {name: each.astype(np.float32) for name, each in given.items()}, exact


@pytest.mark.parametrize("changes", [
    {"product": "planes"}, {"product": "tiles"}, {"product": "mixed"},
    {"product": "mixed", "product_tile": "64x64x32", "split_k": "2"},
    {"product": "planes", "product_tile": "64x64x32", "split_k": "2"},
    {"product": "tiles", "precision": "ieee", "split_k": "2"},
    {"product": "planes", "product_epilogue": "apart"},
    {"product": "planes", "product_tile": "64x64x32", "product_programs": "persistent"},
], ids=str)  # fmt: skip
def test_a_linear_layer_with_its_activation_comes_out_right(interpreting, changes):
    call = linear_relu()
    given, exact = a_linear()
    found = replaced(call, chosen(call, **changes))
    apart = changes.get("product_epilogue") == "apart"
    assert ("bias_relu" in launched(found)) == apart
    if apart:
        return
    assert not any(isinstance(each, Library) and "mm" in each.target for each in found.steps)
    assert np.abs(result(interpreting, found, given, "buf1") - exact).max() < 1e-5


def test_infinities_pass_through_a_fused_epilogue(interpreting):
    call = linear_relu()
    given, _ = a_linear()
    given["x"][3, 5], given["w"][7, 5], given["x"][4, 4] = np.inf, 0.0, np.nan
    with np.errstate(all="ignore"):
        plain = np.maximum(given["x"] @ given["w"].T + given["bias"], 0) / 2
    found = replaced(call, chosen(call, product="planes"))
    got = result(interpreting, found, given, "buf1")
    finite = np.isfinite(plain)
    assert np.array_equal(np.isposinf(got), np.isposinf(plain))
    assert np.abs(got[finite] - plain[finite]).max() < 1e-5


def test_an_operand_that_was_given_up_early_is_kept_until_the_product_is_done():
    found = replaced(linear_relu(), chosen(linear_relu(), product="planes"))
    last = max(n for n, each in enumerate(found.steps) if isinstance(each, Launch))
    dropped = {each.name: n for n, each in enumerate(found.steps) if isinstance(each, Drop)}
    assert dropped["x"] > last
    assert dropped["w"] > last


@pytest.mark.parametrize("index", [
    ("x0 = xindex % 48", "in_ptr0 + x0"), ("x0 = xindex // 96", "in_ptr0 + x0"),
    ("x0 = xindex // 96 % 8", "in_ptr0 + x0"), ("x0 = xindex // 4 % 12", "in_ptr0 + x0"),
    ("x0 = xindex // 10", "in_ptr0 + (x0 % 7 + 3 * (x0 // 100))"),
    ("x0 = xindex", "in_ptr0 + x0"), ("x0 = xindex % 96", "in_ptr0 + 0"),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("split_k", ["1", "2"])
def test_every_index_of_a_pointwise_kernel_keeps_its_meaning(interpreting, index, split_k):
    variable, place = index
    body = [variable, "x2 = xindex", f"tmp0 = tl.load({place}, xmask)", *BIAS_RELU[3:]]
    call = linear_relu(body)
    given, _ = a_linear()
    given["bias"] = np.random.default_rng(1).normal(size=M * N).astype(np.float32)
    flat = np.arange(M * N)
    scope = {"xindex": flat, "in_ptr0": 0}
    exec(variable, scope)
    read = given["bias"][np.broadcast_to(eval(place, scope), flat.shape)].reshape(M, N)
    exact = np.maximum(given["x"].astype(np.float64) @ given["w"].T + read, 0) / 2
    found = replaced(call, chosen(call, product="tiles", precision="ieee", split_k=split_k))
    assert "bias_relu" not in launched(found)
    assert np.abs(result(interpreting, found, given, "buf1") - exact).max() < 1e-5


@pytest.mark.parametrize("change", [
    {3: "tmp1 = tl.load(in_out_ptr0 + x0, xmask)"},
    {3: "tmp1 = tl.load(in_out_ptr0 + (x2 + 1), xmask)"},
    {6: "tmp4 = tl.sum(tmp2, 0)"}, {6: "tmp4 = tl.load(in_ptr0 + tmp2)"},
    {9: "tl.store(in_out_ptr0 + x0, tmp6, xmask)"}, {6: "tmp4 = mystery(tmp2)"},
    {9: "tl.atomic_add(in_out_ptr0 + x2, tmp6, xmask)"},
], ids=str)  # fmt: skip
def test_a_kernel_that_is_not_understood_stays_apart(change):
    body = [change.get(number, line) for number, line in enumerate(BIAS_RELU)]
    call = linear_relu(body)
    assert product_sites(call)[0].epilogue is None
    assert launched(replaced(call, chosen(call)))[-1] == "bias_relu"


def test_a_product_that_is_read_again_later_is_stored_as_it_is():
    body = [*BIAS_RELU[:-1], "tl.store(out_ptr0 + x2, tmp6, xmask)"]
    kernel = pointwise("bias_relu", M * N, ("in_out_ptr0", "in_ptr0", "out_ptr0"), body)
    call = linear_relu()
    steps = list(call.steps)
    steps[6:7] = [
        made("buf2", M, N),
        Launch(
            kernel="bias_relu",
            operands=(Named(name="buf1"), Named(name="bias"), Named(name="buf2"), M * N),
        ),
    ]
    call = replace(call, kernels=(kernel,), steps=tuple(steps), results=(Named(name="buf2"),))
    assert product_sites(call)[0].epilogue is not None
    both = replace(call, results=(Named(name="buf2"), Named(name="buf1")))
    assert product_sites(both)[0].epilogue is None


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_pointwise_convolution_is_a_product_over_channels(interpreting, channels_last):
    call = a_convolution(channels_last=channels_last)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 16, 6, 5)).astype(np.float32)
    w = rng.normal(size=(24, 16, 1, 1)).astype(np.float32)
    bias = rng.normal(size=24).astype(np.float32)
    laid = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if channels_last else x
    found = replaced(call, chosen(call, product="tiles", precision="ieee"))
    got = result(interpreting, found, {"x": laid, "w": w, "bias": bias}, "buf0")
    exact = np.einsum("oc,bchw->bohw", w[..., 0, 0].astype(np.float64), x) + bias[:, None, None]
    assert np.abs(got - exact).max() < 1e-5


def test_a_convolution_over_neighbours_is_left_alone():
    assert product_sites(a_convolution(kernel=3)) == ()


def with_convolution(dtype="float32"):
    """A linear layer in the same call as a convolution over neighbours."""
    layer, conv = linear_relu(), a_convolution(kernel=3)
    images = [replace(each, name=f"c_{each.name}", dtype=dtype)
              for each in conv.arguments]  # fmt: skip
    (step,) = conv.steps
    named = (Named(name="c_x"), Named(name="c_w"))
    step = replace(step, operands=named, result="c_out", keywords=())
    return replace(layer, arguments=(*layer.arguments, *images), steps=(step, *layer.steps))


def test_beside_a_convolution_in_tf32_no_planes_are_proposed_that_the_judge_would_refuse():
    call = with_convolution()
    (ways,) = [each.choices for each in product_parameters(call) if each.name == "product"]
    assert ways == ("auto", "tiles", "library")
    tried = {dict(seed).get("product", "auto") for seed in product_seeds(call)}
    assert tried == {"auto", "tiles"}
    large = replace(
        product_sites(call)[0].found.product, m=4096, n=4096, k=4096, a=(0, 4096, 1),
        b=(0, 1, 4096), c=(0, 4096, 1),
    )  # fmt: skip
    assert best_way(large, fused=True) == "tiles"
    assert best_way(replace(large, beside_tf32=False), fused=True) == "planes"


def test_a_convolution_of_halves_changes_nothing():
    (site,) = product_sites(with_convolution("float16"))
    assert not site.found.product.beside_tf32


def test_the_share_of_the_library_falls_with_what_else_there_is_to_do():
    alone = library_share(linear_relu())
    kernel = linear_relu().kernels[0]
    heavier = replace(kernel, sizes=(("x", 1000 * M * N),))
    assert 0 < library_share(replace(linear_relu(), kernels=(heavier,))) < alone < 1
    assert library_share(a_convolution(kernel=3)) == 0


def test_products_of_the_library_stay_where_they_are_wanted():
    call = linear_relu()
    assert replaced(call, chosen(call, product="library")) is call


def test_a_sum_into_its_own_operand_is_left_to_the_library():
    call = Call(
        arguments=(an_argument("a", 64, 64), an_argument("b", 64, 64)), kernels=(),
        steps=(
            made("buf0", 64, 64),
            Library(target="torch.mm", operands=(Named(name="a"), Named(name="b")), out="buf0"),
            Library(target="torch.addmm", out="buf0",
                    operands=(Named(name="buf0"), Named(name="a"), Named(name="b"))),
        ),
        results=(Named(name="buf0"),),
    )  # fmt: skip
    assert [each.at for each in product_sites(call)] == [1]


def test_a_bias_of_any_shape_is_added_with_its_factors(interpreting):
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=(3, 40, 48)).astype(np.float32) for name in "ab"}
    given["c"] = rng.normal(size=(3, 1, 40)).astype(np.float32)
    call = Call(
        arguments=(an_argument("a", 3, 40, 48), an_argument("b", 3, 40, 48),
                   an_argument("c", 3, 1, 40)),
        kernels=(),
        steps=(
            made("buf0", 3, 40, 40),
            Library(
                target="torch.baddbmm", out="buf0", keywords=(("alpha", 0.5), ("beta", 2)),
                operands=(Named(name="c"), Named(name="a"),
                          Viewed(name="b", shape=(3, 48, 40), stride=(1920, 1, 48))),
            ),
        ),
        results=(Named(name="buf0"),),
    )  # fmt: skip
    exact = given["a"].astype(np.float64) @ given["b"].transpose(0, 2, 1) * 0.5 + 2 * given["c"]
    for way in ("planes", "tiles"):
        found = replaced(call, chosen(call, product=way))
        assert np.abs(result(interpreting, found, given, "buf0") - exact).max() < 2e-5


@pytest.mark.parametrize("tile", ["auto", "128x128x64"])
def test_what_does_not_go_together_is_refused_and_no_failure(tile):
    call = linear_relu()
    offered = {each.name: each.choices for each in product_parameters(call)}
    written, refused = set(), set()
    for way in offered["product"]:
        for precision in offered["precision"]:
            found = chosen(call, product=way, precision=precision, product_tile=tile)
            try:
                replaced(call, found)
                written.add((way, precision))
            except NotRecognised:
                refused.add((way, precision))
    assert ("planes", "fp16x3") in written
    assert {("planes", "ieee"), ("planes", "tf32x3")} <= refused


def test_the_same_choice_gives_the_same_call():
    call = linear_relu()
    for seed in product_seeds(call):
        with suppress(NotRecognised):
            first = replaced(call, chosen(call, **dict(seed)))
            assert first == replaced(call, chosen(call, **dict(seed)))


def test_a_call_without_products_has_nothing_to_choose():
    call = a_convolution(kernel=3)
    assert product_parameters(call) == ()
    assert product_seeds(call) == ((),)
    assert len(product_seeds(linear_relu())) == len(SEEDS) + 1
