"""Float64 convolutions from products: what torch computes, whatever the arguments."""

import random

import pytest
import torch

from kernelsmith.evaluate.worker.cuda import convolutions
from kernelsmith.evaluate.worker.cuda.convolutions import ByProducts


def drawn(rng: random.Random, *, transposed: bool) -> tuple[torch.nn.Module, torch.Tensor]:
    dims, groups = rng.randint(1, 3), rng.choice([1, 1, 2, 3])
    inner, outer = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    kernel = [rng.randint(1, 3) for _ in range(dims)]
    stride = [rng.randint(1, 3) for _ in range(dims)]
    dilation = [rng.randint(1, 2) for _ in range(dims)]
    padding = [rng.randint(0, d * (k - 1)) for k, d in zip(kernel, dilation, strict=True)]
    kind = getattr(torch.nn, f"Conv{'Transpose' if transposed else ''}{dims}d")
    more = {}
    if transposed:
        more["output_padding"] = [
            rng.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)
        ]
    made = kind(
        inner, outer, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups,
        bias=rng.random() < 0.5, **more,
    )  # fmt: skip
    sizes = [rng.randint(5, 8) for _ in range(dims)]
    return made.double(), torch.randn(rng.randint(1, 3), inner, *sizes, dtype=torch.float64)


@pytest.mark.parametrize("transposed", [False, True])
def test_products_give_what_torch_gives(transposed, monkeypatch):
    rng = random.Random(7)
    torch.manual_seed(7)
    for _ in range(60):
        model, x = drawn(rng, transposed=transposed)
        monkeypatch.setattr(convolutions, "_CHUNK", rng.choice([1, 100, 1 << 20]))
        with torch.no_grad():
            expected = model(x)
            with ByProducts(least=0):
                found = model(x)
        assert found.shape == expected.shape
        assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12), (model, x.shape)


def test_small_ones_and_other_precisions_are_left_to_the_library(monkeypatch):
    def never(*args: object) -> torch.Tensor:
        raise AssertionError("computed from products")

    monkeypatch.setattr(convolutions, "convolution", never)
    model, x = torch.nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)
    with torch.no_grad(), ByProducts(least=0):
        assert model(x).shape == (2, 4, 6, 6)
    with torch.no_grad(), ByProducts():
        assert model.double()(x.double()).shape == (2, 4, 6, 6)
    with torch.no_grad(), ByProducts(least=0), pytest.raises(AssertionError, match="products"):
        model(x.double())


def test_infinities_and_nan_stay_where_windows_reach_them():
    x = torch.zeros(1, 1, 6, 6, dtype=torch.float64)
    x[0, 0, 2, 3], x[0, 0, 5, 5] = float("inf"), float("nan")
    model = torch.nn.Conv2d(1, 2, 3, padding=1).double()
    with torch.no_grad():
        expected = model(x)
        with ByProducts(least=0):
            found = model(x)
    assert torch.allclose(found, expected, equal_nan=True)


def test_inputs_without_a_batch_are_computed_too():
    model, x = torch.nn.Conv2d(2, 3, 3).double(), torch.randn(2, 6, 6, dtype=torch.float64)
    with torch.no_grad():
        expected = model(x)
        with ByProducts(least=0):
            found = model(x)
    assert torch.allclose(found, expected)
