"""Products of half precision: programs that stay, tiles fetched by descriptor."""

from dataclasses import replace

import numpy as np
import pytest
from rule_tasks import a_task
from test_product_plan import a_product, computed, drawn, worst_row

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.chip import chip_of
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.plan import check
from kernelsmith.propose.rules.products.product import Schedule, Triangle
from kernelsmith.propose.rules.products.standalone import product_family

PLAIN = Schedule(precision="native", bm=32, bn=64, bk=32, warps=4, stages=2)
BY_DESCRIPTOR = {"product": "tiles", "product_loads": "descriptors"}
STAYS = {"product": "tiles", "product_programs": "persistent"}


def half(**sizes):
    """A product of float16."""
    return a_product(**sizes, dtype="float16", out="float16")


def task_of(rows=256, inputs="torch.randn(rows, 64)", dtype="bfloat16"):
    """A linear layer in half precision."""
    task = a_task("return F.gelu(self.fc(x))", init="self.fc = nn.Linear(64, 192)",
                  inputs=inputs.replace("rows", str(rows)))  # fmt: skip
    return replace(task, workloads=(Workload(dtype=dtype),))


@pytest.mark.parametrize("changes", [
    {"persistent": True}, {"descriptors": True}, {"persistent": True, "descriptors": True},
    {"descriptors": True, "split_k": 2}, {"bm": 64, "persistent": True},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("sizes", [
    {"m": 72, "n": 72, "k": 72}, {"m": 40, "n": 72, "k": 72, "batch": 2, "a_by_column": True},
    {"m": 80, "n": 72, "k": 72, "b_by_column": True},
], ids=str)  # fmt: skip
def test_tiles_of_half_precision_are_right_however_they_come(interpreting, changes, sizes):
    product = half(**sizes)
    a, b, given = drawn(product)
    given = {name: each.astype(np.float16) for name, each in given.items()}
    a, b = (each.astype(np.float16).astype(np.float64) for each in (a, b))
    found = computed(interpreting, product, replace(PLAIN, **changes), given)
    assert worst_row(found, a @ b) < 2**-11


def test_only_a_triangle_is_multiplied_by_programs_that_stay(interpreting):
    product = replace(half(m=136, n=136, k=72), kept=Triangle(lower=True))
    a, b, given = drawn(product)
    given = {name: each.astype(np.float16) for name, each in given.items()}
    schedule = replace(PLAIN, bm=64, persistent=True, descriptors=True)
    found = computed(interpreting, product, schedule, given)
    exact = np.tril(a.astype(np.float64) @ b.astype(np.float64))
    assert worst_row(np.tril(found), exact) < 2**-9
    assert (found[:, 0, 64:] == 0).all()


@pytest.mark.parametrize(("product", "fits"), [
    (half(m=64, n=64, k=64), True), (half(m=64, n=64, k=60), False),
    (half(m=64, n=60, k=64), False),
    (half(m=60, n=64, k=64), True), (half(m=60, n=64, k=64, a_by_column=True), False),
    (replace(half(m=64, n=64, k=64, batch=2), a=(4100, 64, 1)), False),
    (replace(half(m=64, n=64, k=64), b=(0, 128, 2)), False),
    (a_product(m=64, n=64, k=64), False),
], ids=str)  # fmt: skip
def test_a_descriptor_wants_dense_rows_that_begin_at_multiples_of_16_bytes(product, fits):
    schedule = replace(PLAIN, descriptors=True)
    if product.dtype == "float32":
        schedule = replace(schedule, precision="ieee")
    if fits:
        check(product, schedule)
        return
    with pytest.raises(NotRecognised, match="not copied by descriptor"):
        check(product, schedule)


def test_a_candidate_asks_whether_its_inputs_begin_where_a_descriptor_can():
    found = product_family(task_of())
    source = found.source(found.space.defaults | BY_DESCRIPTOR)
    assert "if x.data_ptr() % 16 == 0 and self.fc.weight.data_ptr() % 16 == 0:" in source
    assert "triton.set_allocator(scratch)" in source
    assert "data_ptr" not in found.source(found.space.defaults)


def test_halves_begin_by_pointers_and_try_descriptors_and_programs_that_stay():
    found = product_family(task_of(rows=4096))
    assert found.space.defaults["product_loads"] == "pointers"
    starts = [found.source(each) for each in found.space.starts[:4]]
    assert "tl.make_tensor_descriptor" not in starts[0]
    assert "tl.make_tensor_descriptor" in starts[1]
    assert "for tile in tl.range" in starts[1]
    older = chip_of(Device(kind="cuda", name="NVIDIA A100-SXM4-80GB"))
    without = product_family(task_of(rows=4096), older)
    assert all("make_tensor_descriptor" not in each for each in map(
        without.source, without.space.starts[:2]))  # fmt: skip


def test_float32_in_tiles_does_not_stay():
    found = product_family(a_task("return x @ y", names="x, y",
                                  inputs="torch.randn(256, 64), torch.randn(64, 256)"))  # fmt: skip
    with pytest.raises(NotRecognised, match="are persistent"):
        found.source(found.space.defaults | STAYS | {"precision": "bf16x6"})
