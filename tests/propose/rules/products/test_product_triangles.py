"""Products of which a triangle is kept: what is seen of it, and that nothing else is multiplied."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from product_calls import dense, pointwise
from rule_tasks import a_task
from test_product_plan import FP16X3, IEEE, a_product, computed, drawn

from kernelsmith.propose.rules.compiled_families import Reseeded
from kernelsmith.propose.rules.families import Begun, Families, templates_only
from kernelsmith.propose.rules.products.choose import best_way, expected_us
from kernelsmith.propose.rules.products.epilogue import read_epilogue
from kernelsmith.propose.rules.products.kept import kept_of
from kernelsmith.propose.rules.products.product import Product, Triangle
from kernelsmith.propose.rules.products.replace import product_sites
from kernelsmith.propose.rules.products.standalone import product_family
from kernelsmith.propose.rules.products.triangles import triangle_lines, works_lines
from kernelsmith.propose.rules.products.written import written_products

PAIR = {"names": "x, y", "inputs": "torch.randn(256, 96), torch.randn(96, 192)"}


class Scalars:
    """What Triton does with single numbers."""

    float32 = float
    sqrt = staticmethod(math.sqrt)
    cast = staticmethod(lambda number, kind: kind(number))
    where = staticmethod(lambda condition, a, b: a if condition else b)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("sizes", [(512, 512), (300, 130), (100, 500), (64, 64)])
def test_every_tile_has_one_number_and_those_with_work_come_first(sizes, lower):
    m, n = sizes
    row, column = np.indices(sizes)
    for by in (-200, -64, -63, -1, 0, 1, 2, 64, 70, 600):
        product = replace(a_product(m=m, n=n), kept=Triangle(lower=lower, by=by))
        inside = column - row <= by if lower else column - row >= by
        assert product.share == pytest.approx(inside.mean())
        schedule = replace(IEEE, bm=64, bn=64)
        text = "\n".join(triangle_lines(product, schedule, "tile"))
        text = re.sub(r"i = (.*)\.to\(tl\.int32\)", r"i = int(\1)", text)
        places, working = [], []
        for tile in range(-(-m // 64) * -(-n // 64)):
            known = {"tile": tile, "tl": Scalars, "BM": 64, "BN": 64}
            exec(text, known)
            m0, n0 = known["m0"], known["n0"]
            places.append((m0, n0))
            working.append(known["works"])
            exec(works_lines(product)[0], known)
            assert known["works"] == working[-1]
            assert working[-1] or not inside[m0 : m0 + 64, n0 : n0 + 64].any()
        assert sorted(places) == [(a, b) for a in range(0, m, 64) for b in range(0, n, 64)]
        assert working == sorted(working, reverse=True)
        assert sum(working) <= inside.mean() * len(places) + sum(sizes) / 64 + 2


@pytest.mark.parametrize("kept", [Triangle(lower=True, by=-1), Triangle(lower=False, by=30)])
@pytest.mark.parametrize("schedule", [
    IEEE, replace(IEEE, bm=64), FP16X3, replace(FP16X3, persistent=True, descriptors=True),
    replace(FP16X3, split_k=3), replace(IEEE, bm=64, split_k=2), replace(FP16X3, bm=128),
], ids=str)  # fmt: skip
def test_what_is_kept_is_right_and_tiles_outside_are_not_multiplied(interpreting, schedule, kept):
    product = replace(a_product(m=150, n=140, k=100), kept=kept)
    a, b, given = drawn(product)
    row, column = np.indices((150, 140))
    inside = column - row <= kept.by if kept.lower else column - row >= kept.by
    found = computed(interpreting, product, schedule, given)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(found - exact)[:, inside].max() < 4e-5
    corner = np.s_[:, :8, -8:] if kept.lower else np.s_[:, -8:, :8]
    assert (found[corner] == 0).all()


@pytest.mark.parametrize(("forward", "kept"), [
    ("torch.tril(x @ y)", Triangle(lower=True)),
    ("torch.triu(F.gelu(x @ y), -2) * 3 + 1", Triangle(lower=False, by=-2)),
    ("torch.tril(x @ y, 5) + torch.tril(F.relu(x @ y), 5)", Triangle(lower=True, by=5)),
    ("torch.tril(x @ y) + torch.tril(x @ y, 1)", None),
    ("torch.tril(x @ y) + (x @ y)", None),
    ("(x @ y) * 2", None),
])  # fmt: skip
def test_a_triangle_is_seen_where_all_that_is_stored_needs_no_more_of_the_product(forward, kept):
    (one,) = written_products(a_task(f"return {forward}", **PAIR))
    (site,) = product_sites(one.call)
    assert site.epilogue is not None
    assert site.found.product.kept == kept


def test_what_is_true_of_rows_of_all_matrices_together_is_no_triangle():
    task = a_task("return torch.tril(self.fc(x))", init="self.fc = nn.Linear(48, 70)",
                  inputs="torch.randn(4, 70, 48)")  # fmt: skip
    (one,) = written_products(task)
    (site,) = product_sites(one.call)
    assert (site.found.product.m, site.found.product.kept) == (280, None)


@pytest.mark.parametrize(("lines", "kept"), [
    (("tmp2 = tmp0 <= tmp1", "tmp5 = tl.where(tmp2, tmp3, tmp4)"), Triangle(lower=True, by=3)),
    (("tmp2 = tmp0 >= tmp1", "tmp5 = tl.where(tmp2, tmp3, tmp4)"), Triangle(lower=False, by=3)),
    (("tmp2 = tmp1 > tmp0", "tmp5 = tl.where(tmp2, tmp3, tmp4)"), Triangle(lower=True, by=2)),
    (("tmp2 = tmp0 > tmp1", "tmp5 = tl.where(tmp2, tmp4, tmp3)"), Triangle(lower=True, by=3)),
    (("tmp2 = tmp0 == tmp1", "tmp5 = tl.where(tmp2, tmp3, tmp4)"), None),
    (("tmp2 = tmp0 <= tmp1", "tmp5 = tl.where(tmp2, tmp3, tmp3)"), None),
    (("tmp2 = tmp3 <= tmp4", "tmp5 = tl.where(tmp2, tmp3, tmp4)"), None),
])  # fmt: skip
def test_the_compilers_own_words_for_a_triangle_are_read(lines, kept):
    body = ["x0 = (xindex % 96)", "x1 = xindex // 96", "x2 = xindex", "tmp0 = x0 + ((-1)*x1)",
            "tmp1 = tl.full([1], 3, tl.int64)", "tmp3 = tl.load(in_out_ptr0 + (x2), xmask)",
            "tmp4 = tl.full([1], 0.0, tl.float32)", *lines,
            "tl.store(in_out_ptr0 + (x2), tmp5, xmask)"]  # fmt: skip
    product = Product(m=64, n=96, k=32, a=(0, 32, 1), b=(0, 96, 1), c=(0, *dense(64, 96)))
    kernel = pointwise("behind", 64 * 96, ("in_out_ptr0",), body)
    epilogue = read_epilogue(kernel, frozenset({"in_out_ptr0"}), product)
    assert kept_of(epilogue, product) == kept


def test_half_of_a_product_is_expected_to_take_half_the_time():
    whole = Product(m=4096, n=4096, k=4096, a=(0, 4096, 1), b=(0, 4096, 1), c=(0, 4096, 1))
    half = replace(whole, kept=Triangle(lower=True))
    assert expected_us(half, "planes") < 0.6 * expected_us(whole, "planes")
    assert expected_us(half, "library") == expected_us(whole, "library")
    assert best_way(half, fused=True) == "planes"


def test_an_epilogue_apart_gets_the_whole_product():
    family = product_family(a_task("return torch.tril(x @ y)", **PAIR))
    fused, apart = (
        family.source(family.space.defaults | {"product": "planes", "product_epilogue": each})
        for each in ("fused", "apart")
    )
    assert "works" in fused
    assert "works" not in apart


def test_a_triangle_that_the_source_tells_of_stays_beside_the_compilers_products():
    for forward, there in (("torch.tril(x @ y)", True), ("F.gelu(x @ y)", False)):
        task = a_task(f"return {forward}", **PAIR)
        own = templates_only(task, "triton").members[0]
        compiled = Reseeded(family=own, space=replace(own.space, template="compiled"))
        joined = Begun(families=Families(members=(compiled,))).joined(task, "triton")
        assert [each.space.template for each in joined.members] == (
            ["compiled", "products"] if there else ["compiled"]
        )
