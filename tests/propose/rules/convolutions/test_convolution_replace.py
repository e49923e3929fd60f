"""Library convolutions of a compiled call, done by kernels of our own where these are known."""

import random
from dataclasses import replace

import pytest
from convolution_runner import error, runner

from kernelsmith.propose.rules.compiler.call import Argument, Call, Library, Listed, Named
from kernelsmith.propose.rules.convolutions.replace import (
    convolution_parameters,
    convolution_seeds,
    convolution_sites,
    convolved,
    exact_sites,
)
from kernelsmith.propose.rules.space import Space

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
TEN_BITS = 4e-3
OWN = {"convolution": "packed", "convolution_tile": "64x64", "convolution_stages": "3"}


def a_call(x, weight, *, last=False, **options):
    """One convolution; ``last`` lays its result out with channels side by side."""
    given = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0, "groups": 1} | options
    ndim = len(x) - 2
    turned = bool(given.pop("transposed", False))
    groups = given.pop("groups")
    lists = {
        name: tuple(each) if isinstance(each, tuple) else (each,) * ndim
        for name, each in given.items()
    }
    made = torch.convolution(
        torch.empty(x, device="meta"), torch.empty(weight, device="meta"), None,
        lists["stride"], lists["padding"], lists["dilation"], turned, lists["output_padding"],
        groups,
    )  # fmt: skip
    if last:
        made = made.movedim(1, -1).contiguous().movedim(-1, 1)
    keywords = {name: Listed(items=each) for name, each in lists.items()}
    keywords |= {"transposed": turned, "groups": groups, "bias": None}
    step = Library(
        target="torch.convolution", operands=(Named(name="x"), Named(name="w")),
        keywords=tuple(keywords.items()), result="out", shape=tuple(made.shape),
        stride=made.stride(),
    )  # fmt: skip
    shapes = {"x": x, "w": weight}
    arguments = tuple(
        Argument(name=name, path=name, shape=each, stride=torch.empty(each, device="meta").stride())
        for name, each in shapes.items()
    )
    return Call(arguments=arguments, kernels=(), steps=(step,), results=(Named(name="out"),))


@pytest.fixture(scope="module")
def pool():
    with runner(faithful=True) as opened:
        yield opened


def off(pool, call, layouts=(False, False), chosen=OWN):
    made = convolved(call, chosen)
    (step,) = made.steps
    assert step.target.startswith("convolution_")
    return pool.submit(error, made.prelude, step.target, call, layouts).result()


@pytest.mark.parametrize("layouts", [(False, False), (True, True)])
def test_layouts_are_taken_and_given_as_the_call_has_them(pool, layouts):
    call = a_call((2, 20, 7, 9), (24, 20, 3, 3), last=layouts[0], padding=1, stride=2)
    assert 1e-6 < off(pool, call, layouts) < TEN_BITS


@pytest.mark.parametrize("call", [
    a_call((1, 32, 17), (16, 32, 5), dilation=2),
    a_call((1, 16, 4, 5, 6), (20, 16, 3, 3, 3), padding=1),
    a_call((2, 3, 15, 16), (16, 3, 7, 7), stride=2, padding=3),
    a_call((2, 8, 6, 7), (32, 8, 3, 3)),
    a_call((1, 8, 9, 9), (32, 8, 3, 3), dilation=2),
    a_call((2, 16, 5, 6), (16, 18, 4, 4), transposed=True, stride=2, padding=1),
    a_call((1, 32, 6, 6), (40, 16, 3, 3), groups=2),
    a_call((1, 36, 4, 4), (36, 16, 3, 3), groups=2, transposed=True, output_padding=1, stride=2),
])  # fmt: skip
def test_forms_of_all_kinds_are_right(pool, call):
    assert off(pool, call) < TEN_BITS


@pytest.mark.parametrize("convolution", ["packed_tf32x3", "packed_bf16x6"])
@pytest.mark.parametrize("call", [
    a_call((2, 20, 7, 9), (24, 20, 3, 3), padding=1, stride=2),
    a_call((2, 3, 15, 16), (16, 3, 7, 7), stride=2, padding=3),
    a_call((1, 36, 4, 4), (36, 16, 3, 3), groups=2, transposed=True, output_padding=1, stride=2),
])  # fmt: skip
def test_our_own_can_be_exact_too(pool, call, convolution):
    chosen = {**OWN, "convolution": convolution}
    assert off(pool, call, chosen=chosen) < 1e-6
    made = convolved(call, chosen)
    assert made.conditions == call.conditions
    assert "rounded_to_tf32" not in made.prelude


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_convolutions_as_they_come_are_right(pool, seed):
    rng = random.Random(seed)
    ndim, turned, groups = rng.randint(1, 3), rng.random() < 0.5, rng.choice([1, 1, 2])
    into, out = groups * rng.randint(16, 20), groups * rng.randint(16, 20)
    size = tuple(rng.randint(1, 3) for _ in range(ndim))
    stride, step = rng.randint(1, 2), rng.randint(1, 2)
    x = (rng.randint(1, 2), into, *(rng.randint(7, 9) for _ in range(ndim)))
    weight = (into, out // groups, *size) if turned else (out, into // groups, *size)
    padding = tuple(rng.randint(0, (k - 1) * step // 2) for k in size)
    call = a_call(x, weight, last=rng.random() < 0.5, transposed=turned, stride=stride,
                  dilation=step, groups=groups, padding=padding)  # fmt: skip
    layouts = (rng.random() < 0.5, rng.random() < 0.5)
    tile = rng.choice(["64x64", "128x64"])
    assert off(pool, call, layouts, {**OWN, "convolution_tile": tile}) < TEN_BITS


@pytest.mark.parametrize("call", [
    a_call((1, 16, 9, 9), (16, 1, 3, 3), groups=16),
    a_call((1, 3, 9, 9), (32, 3, 1, 1)),
    a_call((1, 32, 9, 9), (4, 32, 3, 3)),
    a_call((1, 16, 4, 4), (16, 16, 3, 3), transposed=True, stride=6),
])  # fmt: skip
def test_what_would_leave_tensor_cores_idle_is_left_to_the_library(call):
    assert convolution_sites(call) == ()
    assert all("packed" not in each.choices for each in convolution_parameters(call))
    assert convolution_seeds(call) == ()
    assert convolved(call, OWN) is call


@pytest.mark.parametrize("turned", [False, True])
def test_the_library_can_be_asked_for_float32(turned):
    call = a_call((1, 8, 9, 9), (8, 8, 3, 3), transposed=turned, stride=2, padding=1)
    (chosen,) = (each for each in convolution_parameters(call) if each.name == "convolution")
    assert chosen.safe == "float32"
    (step,) = convolved(call, {**OWN, "convolution": "float32"}).steps
    operator = getattr(torch.ops.aten, step.target.split(".")[3]).default
    given = dict(
        zip([each.name for each in operator._schema.arguments], step.operands, strict=True)
    )
    listed = {name: each for name, each in given.items() if isinstance(each, Listed)}
    wanted = dict(call.steps[0].keywords)
    assert listed == {name: wanted[name] for name in listed}
    assert set(listed) == {"padding", "stride", "dilation", *(["output_padding"] if turned else [])}
    assert (given["groups"], given["allow_tf32"]) == (1, False)
    assert [given["self"], given["weight"]] == [Named(name="x"), Named(name="w")]


def test_one_channel_a_group_and_halves_are_nothing_that_tf32_concerns():
    alone = a_call((1, 16, 9, 9), (16, 1, 3, 3), groups=16)
    assert convolution_parameters(alone) == ()
    call = a_call((1, 8, 9, 9), (8, 8, 3, 3))
    halves = tuple(replace(each, dtype="float16") for each in call.arguments)
    assert exact_sites(replace(call, arguments=halves)) == ()


def test_what_rounds_knows_what_to_be_instead_and_stays_whose_it_is():
    call = a_call((1, 16, 9, 9), (16, 16, 3, 3))
    space = Space(template="c", parameters=convolution_parameters(call),
                  seeds=convolution_seeds(call))  # fmt: skip
    own = {**space.defaults, "convolution": "packed"}
    assert space.exactly(space.defaults) == {**space.defaults, "convolution": "float32"}
    assert space.exactly(own) == {
        "convolution": "packed_bf16x6", "convolution_tile": "128x64", "convolution_stages": "3",
    }  # fmt: skip
    assert space.exactly(own) in space.starts
    for name in ("float32", "packed_tf32x3", "packed_bf16x6"):
        assert not space.rounding({**own, "convolution": name})


def test_halves_have_nothing_to_round_or_to_split():
    call = a_call((1, 16, 9, 9), (16, 16, 3, 3))
    halves = tuple(replace(each, dtype="float16") for each in call.arguments)
    first, *_ = convolution_parameters(replace(call, arguments=halves))
    assert (first.choices, first.rounded, first.safe) == (("library", "packed"), (), None)
    seeds = convolution_seeds(replace(call, arguments=halves))
    assert all("x" not in dict(each)["convolution"] for each in seeds)


def test_the_librarys_choice_changes_nothing():
    call = a_call((1, 16, 9, 9), (16, 16, 3, 3))
    assert convolved(call, {**OWN, "convolution": "library"}) is call


def test_tf32_is_only_used_where_torch_would():
    made = convolved(a_call((1, 16, 9, 9), (16, 16, 3, 3)), OWN)
    assert ("torch.backends.cudnn.allow_tf32", "True") in made.conditions


def test_convolutions_of_one_form_share_their_kernels():
    one = a_call((1, 16, 9, 9), (16, 16, 3, 3))
    (step,) = one.steps
    again = replace(step, operands=(Named(name="x"), Named(name="w")), result="other")
    made = convolved(replace(one, steps=(step, again)), OWN)
    assert made.steps[0].target == made.steps[1].target
    assert made.prelude.count("def convolve_") == 1


def test_another_call_with_the_same_form_names_it_alike():
    one = convolved(a_call((1, 16, 9, 9), (16, 16, 3, 3)), OWN)
    other = convolved(a_call((2, 32, 7, 7), (48, 32, 3, 3)), OWN)
    assert one.prelude == other.prelude
    assert convolved(a_call((1, 16, 9, 9), (16, 16, 3, 3), stride=2), OWN).prelude != one.prelude
