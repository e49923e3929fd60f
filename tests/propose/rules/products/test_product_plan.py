"""Kernels that a product becomes, run in Triton's interpreter."""

from dataclasses import replace

import numpy as np
import pytest
from product_interpreter import run

from kernelsmith.propose.rules.compiler.call import Allocate, Named
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import parameters, scheduled
from kernelsmith.propose.rules.products.epilogue import Bias
from kernelsmith.propose.rules.products.plan import Operands, check, write
from kernelsmith.propose.rules.products.product import Product, Schedule

FP16X3 = Schedule(precision="fp16x3", planes="once", bm=64, bn=64, bk=32, warps=4, stages=2)
BF16X6 = Schedule(precision="bf16x6", planes="once", bm=64, bn=64, bk=32, warps=4, stages=2)
MIXED = Schedule(precision="fp16x3", planes="one", bm=64, bn=64, bk=32, warps=4, stages=2)
MIXED6 = Schedule(precision="bf16x6", planes="one", bm=64, bn=64, bk=32, warps=4, stages=2)
IEEE = Schedule(precision="ieee", bm=32, bn=64, bk=16, warps=4, stages=2)


SPLIT = [FP16X3, BF16X6, MIXED, MIXED6]
SPLIT_NAMES = ["fp16x3", "bf16x6", "mixed fp16x3", "mixed bf16x6"]


def a_product(m=70, n=130, k=100, batch=1, *, a_by_column=False, b_by_column=False, **changes):
    """A dense product; operands may lie transposed."""
    a = (m * k, 1, m) if a_by_column else (m * k, k, 1)
    b = (k * n, 1, k) if b_by_column else (k * n, n, 1)
    return Product(batch=batch, m=m, n=n, k=k, a=a, b=b, c=(m * n, n, 1), **changes)


def drawn(product, kind="normal", seed=0):
    """Operands as they lie in memory, and as (batch, m, k) and (batch, k, n)."""
    rng = np.random.default_rng(seed)
    p = product
    shapes = (p.batch, p.m, p.k), (p.batch, p.k, p.n)
    draw = {
        "normal": lambda s: rng.normal(size=s), "uniform": lambda s: rng.uniform(size=s),
        "short": lambda s: rng.integers(-3, 4, size=s) / 3,
        "wide": lambda s: rng.normal(size=s) * np.exp2(rng.integers(-14, 15, size=s)),
        "rows": lambda s: rng.normal(size=s) * np.exp2(rng.integers(-30, 31, size=(*s[:-1], 1))),
        "tiny": lambda s: rng.normal(size=s) * 1e-17, "huge": lambda s: rng.normal(size=s) * 1e17,
        "extreme": lambda s: rng.normal(size=s) * np.exp2(rng.integers(-60, 60, size=s)),
    }[kind]  # fmt: skip
    a, b = (draw(each).astype(np.float32) for each in shapes)
    laid_a = np.ascontiguousarray(a.transpose(0, 2, 1)) if p.a[1] == 1 and p.k > 1 else a
    laid_b = np.ascontiguousarray(b.transpose(0, 2, 1)) if p.b[1] == 1 and p.n > 1 else b
    return a, b, {"a": laid_a, "b": laid_b}


def computed(interpreting, product, schedule, given, bias=None):
    """What the kernels give."""
    operands = Operands(
        a=Named(name="a"), b=Named(name="b"), bias=Named(name="bias") if bias else None,
        outputs=(Named(name="c"),),
    )  # fmt: skip
    written = write(0, product, schedule, operands, bias)
    p = product
    made = Allocate(name="c", shape=(p.batch, p.m, p.n), stride=p.c, dtype=p.out)
    return interpreting.submit(run, written.kernels, (made, *written.steps), given, "c").result()


def worst_row(found, exact):
    """The judge's measure: each row's error relative to the row or to the tensor, the worst."""
    scale = np.sqrt((exact**2).mean()) * np.sqrt(exact.shape[-1])
    off = np.linalg.norm(found - exact, axis=-1)
    return (off / np.maximum(np.linalg.norm(exact, axis=-1), scale)).max()


@pytest.mark.parametrize("kind", ["normal", "uniform", "short", "wide", "rows", "huge"])
@pytest.mark.parametrize("schedule", SPLIT, ids=SPLIT_NAMES)
def test_planes_are_as_exact_as_float32(interpreting, schedule, kind):
    product = a_product(m=64, n=128, k=288)
    a, b, given = drawn(product, kind)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    plain = worst_row((a @ b).astype(np.float64), exact)
    found = worst_row(computed(interpreting, product, schedule, given), exact)
    assert found <= max(plain, 2**-22)


@pytest.mark.parametrize("kind", ["tiny", "extreme"])
@pytest.mark.parametrize("schedule", SPLIT, ids=SPLIT_NAMES)
def test_what_planes_cannot_hold_is_computed_again(interpreting, schedule, kind):
    product = a_product(m=64, n=64, k=64)
    a, b, given = drawn(product, kind)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = computed(interpreting, product, schedule, given)
    assert worst_row(found, exact) <= 2**-21


@pytest.mark.parametrize("schedule", SPLIT, ids=SPLIT_NAMES)
def test_infinities_and_nan_come_out_as_in_float32(interpreting, schedule):
    product = a_product()
    a, b, given = drawn(product)
    a[0, 3, 5], a[0, 4, 70], b[0, 9, 2], a[0, 6, 0] = np.inf, -np.inf, np.nan, 3.4e38
    b[0, 5, 4] = 0.0
    with np.errstate(all="ignore"):
        plain = a @ b
    found = computed(interpreting, product, schedule, given)
    assert np.array_equal(np.isnan(found), np.isnan(plain))
    assert np.array_equal(np.isposinf(found), np.isposinf(plain))
    assert np.array_equal(np.isneginf(found), np.isneginf(plain))


@pytest.mark.parametrize("changes", [
    {}, {"a_by_column": True}, {"b_by_column": True}, {"batch": 3}, {"m": 64, "n": 64, "k": 64},
    {"m": 257, "n": 65, "k": 33}, {"batch": 2, "m": 5, "n": 3, "k": 2},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("schedule", [
    FP16X3, MIXED, IEEE,
    Schedule(precision="fp16x3", planes="once", bm=64, bn=64, bk=32, warps=4, descriptors=True),
    Schedule(precision="fp16x3", planes="once", bm=128, bn=64, bk=32, persistent=True, group=2),
], ids=["planes", "mixed", "tiles", "descriptors", "persistent"])  # fmt: skip
def test_layouts_edges_and_batches_are_right(interpreting, schedule, changes):
    product = a_product(**changes)
    a, b, given = drawn(product)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert worst_row(computed(interpreting, product, schedule, given), exact) < 4e-7


@pytest.mark.parametrize("base", [FP16X3, MIXED, IEEE], ids=["planes", "mixed", "tiles"])
def test_shares_of_k_are_added_up(interpreting, base):
    schedule = Schedule(
        precision=base.precision, planes=base.planes, bm=64, bn=64, bk=32, split_k=3
    )
    product = a_product(m=65, n=70, k=150, batch=2)
    a, b, given = drawn(product)
    given["bias"] = np.arange(70, dtype=np.float32)
    bias = Bias(strides=(0, 0, 1), beta=0.5)
    exact = a.astype(np.float64) @ b.astype(np.float64) + 0.5 * given["bias"]
    assert worst_row(computed(interpreting, product, schedule, given, bias), exact) < 4e-7


@pytest.mark.parametrize("sizes", [{"n": 1}, {"m": 1}, {"n": 1, "a_by_column": True}], ids=str)
@pytest.mark.parametrize("split_k", [1, 2])
def test_a_matrix_and_a_vector(interpreting, sizes, split_k):
    product = a_product(**{"m": 70, "n": 45, "k": 300, **sizes})
    a, b, given = drawn(product)
    schedule = Schedule(precision="ieee", bm=16, bn=16, bk=64, warps=4, split_k=split_k)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert worst_row(computed(interpreting, product, schedule, given), exact) < 4e-7


@pytest.mark.parametrize("schedule", [FP16X3, MIXED], ids=["planes", "mixed"])
def test_one_matrix_for_a_whole_batch_is_split_once(interpreting, schedule):
    product = Product(batch=3, m=40, n=50, k=60, a=(0, 60, 1), b=(3000, 50, 1), c=(2000, 50, 1))
    a, b, given = drawn(product)
    given["a"] = a = a[:1]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert worst_row(computed(interpreting, product, schedule, given), exact) < 4e-7


@pytest.mark.parametrize("schedule", [
    Schedule(precision="tf32"), Schedule(precision="native"), Schedule(precision="fp16x3"),
    Schedule(precision="ieee", planes="once"), Schedule(precision="bf16x6", bk=64, stages=6),
    Schedule(precision="fp16x3", planes="once", bm=256, bn=128, bk=32, warps=8),
], ids=str)  # fmt: skip
def test_what_makes_no_sense_is_refused(schedule):
    with pytest.raises(NotRecognised):
        check(a_product(m=512, n=512, k=512), schedule)


@pytest.mark.parametrize("k", [16, 32, 64, 128, 4096])
def test_what_is_chosen_for_many_tiles_fits_shared_memory_however_few_steps_there_are(k):
    product = a_product(m=32768, n=32768, k=k)
    defaults = {each.name: each.default for each in parameters([product])}
    chosen = scheduled(product, defaults | {"product": "planes"}, leading=True, fused=False)
    assert chosen.persistent
    check(product, chosen)
    if k == 64:
        with pytest.raises(NotRecognised, match="shared memory"):
            check(product, replace(chosen, stages=3))
