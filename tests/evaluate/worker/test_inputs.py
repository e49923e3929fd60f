"""Inputs in ranges that a task's own recipe does not draw from."""

import pytest
import torch

from kernelsmith.evaluate.worker import inputs


def changed(variant: str, leaf: torch.Tensor, seed: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    found = inputs._VARIANTS[variant]([leaf], generator)
    assert found is not None
    return found[0]


def misses(variant: str, *, looked_at: int, draws: int = 400) -> float:
    """How often a look at evenly spread elements takes inputs for what the recipe draws."""
    plain = torch.rand(64, 1024)
    at = torch.arange(looked_at) * plain.numel() // looked_at
    caught = sum(
        bool((drawn.view(-1)[at] >= 0).all()) and bool((drawn < 0).any())
        for drawn in (changed(variant, plain, seed) for seed in range(draws))
    )
    return 1 - caught / draws


@pytest.mark.parametrize(("looked_at", "most"), [(8, 0.01), (64, 0.02), (1024, 0.2)])
def test_who_looks_at_a_sample_of_elements_meets_inputs_that_it_takes_for_others(looked_at, most):
    assert misses("speckled", looked_at=looked_at) * misses("dotted", looked_at=looked_at) < most


def test_hardly_any_values_are_changed_and_all_others_stay():
    plain = torch.rand(300, 700)
    drawn = changed("dotted", plain)
    assert 8 <= int((drawn != plain).sum()) <= 16


@pytest.mark.parametrize("leaf", [torch.zeros(0, 3), torch.ones(()), torch.rand(3, 5).t()])
def test_tensors_that_are_empty_scalars_or_transposed_keep_their_form(leaf):
    drawn = changed("dotted", leaf)
    assert drawn.shape == leaf.shape
    assert drawn.stride() == leaf.stride()
    assert drawn.dtype == leaf.dtype


def test_integers_are_left_alone():
    generator = torch.Generator().manual_seed(1)
    assert inputs._VARIANTS["dotted"]([torch.arange(4)], generator) is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_signs_are_turned_half_of_the_time_and_values_stay(dtype):
    plain = torch.rand(300, 700).to(dtype) + 0.5
    drawn = changed("negative", plain)
    assert drawn.dtype is dtype
    assert torch.equal(drawn.abs(), plain)
    assert 0.48 < float((drawn < 0).double().mean()) < 0.52


def test_wide_values_spread_over_four_decades_of_either_sign():
    drawn = changed("wide", torch.ones(300, 700))
    logs = drawn.abs().log10()
    assert (logs.min(), logs.max()) == (pytest.approx(-2, abs=0.01), pytest.approx(2, abs=0.01))
    assert abs(float(logs.mean())) < 0.02
    assert 0.48 < float((drawn < 0).double().mean()) < 0.52


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e100])
def test_speckles_are_as_large_as_what_they_replace(scale):
    plain = scale * torch.rand(300, 700, dtype=torch.float64)
    drawn = changed("speckled", plain)
    noise = drawn[drawn != plain]
    assert 200 < noise.numel() < 700
    assert bool((noise < 0).any())
    assert float(noise.abs().mean()) == pytest.approx(0.46 * scale, rel=0.2)


def test_infinities_do_not_count_where_noise_is_scaled():
    plain = torch.ones(64, 64, dtype=torch.float64)
    plain[3, 5], plain[7, 9] = float("inf"), float("nan")
    assert inputs._scale(plain) == pytest.approx(1.0)
    assert inputs._scale(torch.zeros(4)) == 1.0
    assert inputs._scale(torch.zeros(0)) == 1.0
