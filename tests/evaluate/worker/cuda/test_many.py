"""Comparing many pairs at once says what comparing each of them says."""

import math

import pytest
import torch

from kernelsmith.evaluate.worker.cuda import compare, many
from kernelsmith.evaluate.worker.cuda.many import relative_many

INF, NAN = math.inf, math.nan


def noise(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def a_pair(*shape: int, seed: int, dtype: torch.dtype = torch.float32, apart: float = 1e-3):
    other = noise(*shape, seed=seed, dtype=dtype)
    return other + apart * noise(*shape, seed=seed + 1000, dtype=dtype), other


def one_by_one(pairs) -> list[float]:
    return [compare.relative(a, b).item() for a, b in pairs]


def test_no_pairs_give_no_numbers():
    assert relative_many([]) == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_batch_of_one_form_is_measured_as_its_pairs_are(dtype):
    pairs = [a_pair(7, 33, seed=seed, dtype=dtype, apart=10.0**-seed) for seed in range(6)]
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-12)


def test_several_outputs_a_launch_stay_in_order():
    pairs = [
        pair
        for seed in range(5)
        for pair in (
            a_pair(4, 8, seed=seed),
            a_pair(4, 8, seed=seed, dtype=torch.float16, apart=0.1),
            a_pair(16, seed=seed, apart=1e-5),
            a_pair(seed=seed),
        )
    ]
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-12)


def test_groups_end_where_memory_does(monkeypatch):
    monkeypatch.setattr(many, "_TOGETHER", 100)
    pairs = [a_pair(40, seed=seed) for seed in range(7)] + [a_pair(300, seed=9)] * 2
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-12)


def test_the_furthest_launch_stands_out():
    pairs = [a_pair(64, seed=seed, apart=1e-7) for seed in range(20)]
    pairs[13] = a_pair(64, seed=13, apart=0.5)
    found = relative_many(pairs)
    assert found.index(max(found)) == 13


@pytest.mark.parametrize(
    ("found", "other"),
    [
        ([1.0, NAN, INF], [1.0, NAN, INF]),
        ([1.0, NAN, 2.0], [1.0, 3.0, 2.0]),
        ([1.0, 3.0, 2.0], [1.0, NAN, 2.0]),
        ([1.0, -INF, 2.0], [1.0, INF, 2.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([1e-3, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([1e300, 1e300, 1e300], [-1e300, 1e300, 0.0]),
        ([NAN, NAN, NAN], [1.0, 2.0, 3.0]),
    ],
)
def test_odd_values_count_as_they_do_alone(found, other):
    odd = torch.tensor(found, dtype=torch.float64), torch.tensor(other, dtype=torch.float64)
    plain = a_pair(3, seed=1, dtype=torch.float64)
    pairs = [plain, odd, plain, odd]
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-12)


def test_strides_do_not_matter():
    pairs = [(a.t(), b.t()) for a, b in (a_pair(8, 5, seed=seed) for seed in range(4))]
    pairs += [(a, b.t().contiguous().t()) for a, b in (a_pair(5, 8, seed=s) for s in range(4))]
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-12)


def test_empty_outputs_do_not_differ():
    pairs = [a_pair(0, 4, seed=seed) for seed in range(3)]
    assert relative_many(pairs) == one_by_one(pairs) == [0.0, 0.0, 0.0]


def test_losses_are_compared_too():
    pairs = [(torch.tensor(2.0), torch.tensor(2.0 + seed)) for seed in range(4)]
    assert relative_many(pairs) == pytest.approx([0.0, 1 / 3, 1 / 2, 3 / 5])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("apart", [0.0, 1e-6, 1e-2, 10.0])
def test_a_large_pair_is_measured_in_its_own_precision(monkeypatch, dtype, apart):
    monkeypatch.setattr(many, "_TOGETHER", 100)
    pairs = [a_pair(40, 9, seed=seed, dtype=dtype, apart=apart) for seed in range(3)]
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-6)


@pytest.mark.parametrize(
    ("found", "other"),
    [
        ([1.0, NAN, INF], [1.0, NAN, INF]),
        ([1.5, NAN, INF], [1.0, NAN, INF]),
        ([1.0, NAN, 2.0], [1.0, 3.0, 2.0]),
        ([1.0, 2.0, INF], [1.0, 2.0, 3.0]),
        ([3e38, 0.0, 0.0], [-3e38, 0.0, 0.0]),
        ([1e300, 2e300, 3.0], [1e300, 2e300, 4.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_odd_values_of_a_large_pair_are_looked_at_with_care(monkeypatch, found, other):
    monkeypatch.setattr(many, "_TOGETHER", 1)
    dtype = torch.float64 if 1e200 < found[1] < INF else torch.float32
    odd = torch.tensor(found, dtype=dtype), torch.tensor(other, dtype=dtype)
    pairs = [odd, a_pair(3, seed=1)]
    assert relative_many(pairs) == pytest.approx(one_by_one(pairs), rel=1e-6)
