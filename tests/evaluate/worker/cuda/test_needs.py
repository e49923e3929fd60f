"""Bytes that a task cannot do without: what counts, and what must not."""

import pytest
import torch
from torch import nn

from kernelsmith.evaluate.worker.cuda.needs import compulsory_bytes, flops


def dice(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def count(call, *leaves: torch.Tensor, **options) -> int:
    def listed(given):
        result = call(*given)
        return list(result) if isinstance(result, tuple) else [result]

    with torch.no_grad():
        return compulsory_bytes(listed, list(leaves), generator=dice(), **options)


def total(*tensors: torch.Tensor) -> int:
    return sum(each.nbytes for each in tensors)


def test_a_product_reads_both_factors_and_writes_its_result():
    a, b = torch.rand(256, 128), torch.rand(128, 192)
    assert count(torch.matmul, a, b) == total(a, b) + 256 * 192 * 4


@pytest.mark.parametrize("width", [1, 16, 512])
def test_a_gather_does_not_read_the_table(width):
    table = torch.randn(50000, width)
    rows = torch.randint(50000, (8192 if width > 1 else 800,), generator=dice())
    output = rows.numel() * width * 4
    assert output <= count(lambda t, i: t[i], table, rows) <= output + rows.nbytes


@pytest.mark.parametrize(
    "call",
    [torch.relu, torch.sigmoid, torch.log, torch.abs, lambda x: x.sum(), lambda x: x.mean(),
     lambda x: x.amax(), lambda x: x.softmax(-1), lambda x: x.cumsum(-1), torch.sign,
     lambda x: nn.functional.max_pool2d(x[None], 4), lambda x: x.sort(-1).values,
     lambda x: nn.functional.hardtanh(x, 0.0, 1.0), lambda x: x.argmax(-1)],
)  # fmt: skip
@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
def test_an_input_that_is_read_throughout_counts(call, draw):
    torch.manual_seed(3)
    x = draw(64, 64, 128)
    assert count(call, x) == x.nbytes + call(x).nbytes


def test_one_place_shows_in_a_sum_over_many_others():
    x = torch.rand(1 << 24)
    assert count(lambda x: x.sum(), x) == x.nbytes + 4


def test_a_part_that_is_cut_away_does_not_count():
    x = torch.randn(512, 512)
    assert count(lambda x: x[:256] * 2, x) == x.nbytes // 2


def test_the_empty_half_of_a_triangular_matrix_does_not_count():
    a, b = torch.randn(256, 256).tril(), torch.randn(256, 256)
    assert count(lambda a, b: (a @ b).tril(), a, b) <= b.nbytes + 256 * 256 * 4


def test_an_unused_input_does_not_count():
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    assert count(lambda x, y: x + 1, x, y) == 2 * x.nbytes


def test_a_view_and_a_kept_table_cost_nothing():
    x, table = torch.randn(64, 64), torch.randn(64, 64)
    assert count(lambda x: x.transpose(0, 1), x) == x.nbytes  # a copy of it would be read
    assert count(lambda x: (x * 2, table), x) == 2 * x.nbytes


def test_repeated_values_are_written_once():
    x = torch.randn(64, 64)
    assert count(lambda x: (x * 2).sum(0, keepdim=True).expand(64, 64), x) == x.nbytes + 64 * 4


def test_rounding_that_differs_from_run_to_run_is_no_dependence():
    jitter = dice(1)
    x, unused = torch.randn(64, 64), torch.randn(64, 64)

    def noisy(x, unused):
        return x * (1 + 1e-7 * torch.rand(x.shape, generator=jitter))

    assert count(noisy, x, unused) == 2 * x.nbytes


def test_chance_is_no_dependence():
    x = torch.randn(64, 64)
    assert count(lambda x: torch.randn(64, 64), x) == x.nbytes
    assert count(lambda x: torch.randint(9, (64, 64), dtype=torch.int32), x) == x.nbytes


def test_the_leaves_are_as_they_were_even_after_a_call_that_changes_them():
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    kept = x.clone()
    assert count(lambda x, y: x.add_(y), x, y) == 3 * x.nbytes
    assert torch.equal(x, kept)


def test_indices_count_and_offsets_are_left_alone():
    table = torch.randn(1000, 8)
    rows = torch.randint(1000, (20000,), generator=dice())
    seen = []

    def call(t, i, o):
        seen.append(o.clone())
        return nn.functional.embedding_bag(i, t, o, mode="sum")

    offsets = torch.arange(0, 20000, 2)
    assert count(call, table, rows, offsets) == total(table, rows) + 10000 * 8 * 4
    assert all(torch.equal(each, offsets) for each in seen)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_width_is_probed(dtype):
    x = torch.randn(64, 64).to(dtype)
    assert count(lambda x: x * 2, x) == 2 * x.nbytes


def test_a_narrow_format_is_probed_through_a_wider_one():
    x = torch.randn(64, 64).to(torch.float8_e4m3fn)
    assert count(lambda x: x.float() * 2, x) == x.nbytes + 64 * 64 * 4


def test_channels_last_is_dense_memory_and_a_strided_view_is_not():
    x = torch.randn(2, 8, 16, 16).to(memory_format=torch.channels_last)
    assert count(lambda x: x * 2, x) == 2 * x.nbytes
    assert count(lambda x: x * 2, torch.randn(64, 128)[:, ::2]) == 64 * 64 * 4


def test_no_input_and_an_empty_one():
    assert count(lambda: torch.ones(8)) == 32
    assert count(lambda x: x * 2, torch.empty(0, 4)) == 0


def test_a_count_needs_a_probe():
    with pytest.raises(ValueError, match="at least one probe"):
        count(torch.relu, torch.ones(4), probes=0)


def test_products_are_counted_and_nothing_else():
    a, b = torch.rand(16, 32), torch.rand(32, 8)
    assert flops(lambda leaves: [leaves[0] @ leaves[1]], [a, b]) == 2 * 16 * 32 * 8
    assert flops(lambda leaves: [leaves[0] + 1], [a]) is None
