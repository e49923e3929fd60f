"""Convolutions of one channel a group inside what the compiler wrote: a kernel of our own."""

import pytest
from convolution_runner import error, runner
from test_convolution_replace import a_call

from kernelsmith.propose.rules.convolutions.depthwise import (
    depthwise_parameters,
    depthwise_seeds,
    depthwise_sites,
    windowed,
)

pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.fixture(scope="module")
def pool():
    with runner(faithful=True) as opened:
        yield opened


@pytest.mark.parametrize(("call", "layouts"), [
    (a_call((2, 20, 7, 9), (20, 1, 3, 3), padding=1, groups=20), (False, False)),
    (a_call((2, 20, 7, 9), (20, 1, 3, 3), padding=1, stride=2, groups=20, last=True), (True, True)),
    (a_call((3, 6, 11, 8), (12, 1, 5, 3), padding=(2, 0), groups=6), (False, False)),
    (a_call((3, 6, 11, 8), (12, 1, 5, 3), padding=(4, 2), dilation=2, groups=6), (True, False)),
    (a_call((2, 5, 41), (5, 1, 4), padding=3, stride=3, groups=5), (False, False)),
])  # fmt: skip
def test_it_is_as_exact_as_float32_in_every_layout(pool, call, layouts):
    made = windowed(call, {"depthwise": "windows"})
    (step,) = made.steps
    assert step.target.startswith("depthwise_")
    assert pool.submit(error, made.prelude, step.target, call, layouts).result() < 1e-6


@pytest.mark.parametrize("call", [
    a_call((2, 20, 7, 9), (20, 10, 3, 3), groups=2),
    a_call((2, 20, 7, 9), (8, 20, 3, 3)),
    a_call((2, 20, 7, 9), (20, 1, 3, 3), groups=20, transposed=True),
    a_call((2, 4, 5, 7, 9), (4, 1, 3, 3, 3), groups=4),
    a_call((64, 64, 1024, 1024), (64, 1, 3, 3), groups=64),
])  # fmt: skip
def test_other_convolutions_and_the_largest_are_the_library_s(call):
    assert depthwise_sites(call) == {}
    assert depthwise_parameters(call) == depthwise_seeds(call) == ()


def test_the_library_is_the_second_choice():
    call = a_call((2, 20, 7, 9), (20, 1, 3, 3), groups=20)
    (parameter,) = depthwise_parameters(call)
    assert parameter.default == "windows"
    assert depthwise_seeds(call) == ((("depthwise", "library"),),)
    assert windowed(call, {"depthwise": "library"}) is call
