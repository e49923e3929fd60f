"""Small products, several at a time: chosen where they pay, and exact."""

from dataclasses import replace

import numpy as np
import pytest
from rule_tasks import a_task
from test_product_plan import a_product, computed, drawn, worst_row

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import best_way, parameters, scheduled
from kernelsmith.propose.rules.products.epilogue import Bias
from kernelsmith.propose.rules.products.plan import check
from kernelsmith.propose.rules.products.product import Schedule
from kernelsmith.propose.rules.products.standalone import product_family

SEVERAL = Schedule(precision="ieee", planes="none", bm=16, bn=16, bk=16, warps=4, together=4)


def chosen_for(multiplied, *, fused=False, **changes):
    """What is chosen for one product."""
    usual = {each.name: each.default for each in parameters([multiplied])}
    return scheduled(multiplied, usual | changes, leading=True, fused=fused)


@pytest.mark.parametrize("sizes", [
    {"batch": 6, "m": 16, "n": 16, "k": 16}, {"batch": 5, "m": 7, "n": 19, "k": 3},
    {"batch": 3, "m": 24, "n": 5, "k": 50, "a_by_column": True},
    {"batch": 9, "m": 2, "n": 3, "k": 40, "b_by_column": True}, {"m": 40, "n": 50, "k": 8},
], ids=str)  # fmt: skip
def test_small_products_are_as_exact_as_eager(interpreting, sizes):
    product = a_product(**sizes)
    a, b, given = drawn(product, "wide")
    exact = a.astype(np.float64) @ b.astype(np.float64)
    plain = worst_row((a @ b).astype(np.float64), exact)
    for schedule in (SEVERAL, replace(SEVERAL, together=1, bm=32)):
        found = computed(interpreting, product, schedule, given)
        assert worst_row(found, exact) <= max(2 * plain, 2**-22)


def test_infinities_and_nan_stay_in_their_own_product(interpreting):
    product = a_product(batch=6, m=5, n=6, k=7)
    a, b, given = drawn(product)
    a[1, 2, 3], b[2, 4, 5], a[4, 4, 6], b[4, 6, 0] = np.inf, np.nan, -np.inf, 0.0
    with np.errstate(all="ignore"):
        plain = a @ b
    found = computed(interpreting, product, SEVERAL, given)
    assert np.array_equal(np.isfinite(found), np.isfinite(plain))
    assert np.array_equal(np.isnan(found), np.isnan(plain))


def test_something_is_added_and_one_matrix_may_serve_all(interpreting):
    product = replace(a_product(batch=6, m=5, n=6, k=7), b=(0, 6, 1))
    a, b, given = drawn(product)
    given["b"] = b = b[:1]
    given["bias"] = np.arange(6, dtype=np.float32)
    found = computed(interpreting, product, SEVERAL, given, Bias(strides=(0, 0, 1), beta=0.5))
    exact = a.astype(np.float64) @ b.astype(np.float64) + 0.5 * given["bias"]
    assert worst_row(found, exact) < 4e-7


@pytest.mark.parametrize(("sizes", "fused", "way"), [
    ((4096, 16, 16, 16), False, "several"), ((2048, 8, 64, 64), False, "several"),
    ((512, 24, 24, 64), False, "several"), ((200_000, 8, 8, 8), False, "several"),
    ((1, 4096, 4096, 8), False, "several"), ((1, 8, 8, 8), False, "library"),
    ((1, 8, 8, 8), True, "several"), ((1, 16, 4096, 4096), True, "library"),
    ((200_000, 64, 64, 64), True, "library"), ((1, 4096, 4096, 4096), False, "planes"),
])  # fmt: skip
def test_they_are_chosen_where_memory_binds_and_there_is_enough_of_them(sizes, fused, way):
    batch, m, n, k = sizes
    product = a_product(batch=batch, m=m, n=n, k=k)
    assert best_way(product, fused=fused) == way
    if way == "several":
        schedule = chosen_for(product, fused=fused)
        assert schedule.planes == "none"
        check(product, schedule)


def test_a_program_has_more_of_them_the_smaller_and_the_more_they_are():
    together = [
        chosen_for(a_product(batch=batch, m=m, n=m, k=m)).together
        for batch, m in ((4096, 8), (4096, 16), (65536, 8), (64, 8))
    ]
    assert together == [8, 8, 32, 1]


def test_what_is_large_or_divided_is_not_computed_so():
    assert "several" not in parameters([a_product(m=64, n=64, k=64)])[0].choices
    with pytest.raises(NotRecognised, match="small ones"):
        chosen_for(a_product(m=64, n=64, k=64), product="several")
    with pytest.raises(NotRecognised, match="not divided"):
        chosen_for(a_product(m=8, n=64, k=64), product="several", split_k="4")


def test_the_family_of_small_products_computes_what_follows_with_them():
    task = a_task("return F.gelu(torch.bmm(x, y)) + z", names="x, y, z",
                  inputs="torch.randn(64, 8, 12), torch.randn(64, 12, 20), "
                  "torch.randn(20)")  # fmt: skip
    found = product_family(task)
    source = found.source(found.space.defaults)
    assert "products of 8 x 12 by 12 x 20 at a time" in source
    assert source.count("@triton.jit") == 1
    assert "torch.bmm" not in source.split("EVOLVE-BLOCK-END")[0]
