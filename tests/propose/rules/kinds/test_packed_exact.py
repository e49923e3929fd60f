"""Convolutions over copies where eager's are exact: float32 keeps its bits, and has its room."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import tensor_cores
from part_runner import error, runner
from part_tasks import MIXING
from reduced_tasks import REDUCED
from rule_tasks import a_task
from test_packed import GAPS, STEM, TEN_BITS, the_family
from test_parts_compile import SHARED, compiled, launches

from kernelsmith.evaluate.guards.opcodes import below_float32, precisions
from kernelsmith.propose.rules.kinds.packed.tiles import EXACT, fitted, most_sums

torch = pytest.importorskip("torch")
TASKS = {
    "plain": MIXING["wide_groups"], "few": STEM, "strided": MIXING["dense"],
    "turned": MIXING["turned"], "gaps": GAPS, "channels": REDUCED["channels_softmax"],
    "summed": REDUCED["space_summed"], "moments": REDUCED["again_group"],
    "windows": REDUCED["windows_mean_sum"],
}  # fmt: skip


@pytest.fixture(scope="module")
def pool():
    with runner(faithful=True) as opened:
        yield opened


def chosen(task, precision, **more):
    """What the family begins with in this precision, or its defaults with it."""
    space = the_family(task).space
    if precision == "tf32":
        return space.defaults | more
    return space.exactly(space.defaults) | {"precision": precision} | more


def ran(pool, task, precision, source=None, **options):
    text = the_family(task).source(chosen(task, precision))
    return pool.submit(error, text, source or task.source, **options).result()


@pytest.mark.parametrize("precision", EXACT)
@pytest.mark.parametrize("name", TASKS)
def test_what_is_exact_is_as_near_to_float64_as_eager_is(pool, name, precision):
    off, eager = ran(pool, TASKS[name], precision)
    assert off < 4 * eager + 3e-7


@pytest.mark.parametrize("name", ["plain", "strided", "turned", "moments"])
def test_tf32_is_a_hundred_times_further_off(pool, name):
    off, eager = ran(pool, TASKS[name], "tf32")
    assert 100 * eager < off < TEN_BITS


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXING | REDUCED)
def test_every_start_is_exact_once_it_is_made_so(pool, name):
    task = (MIXING | REDUCED)[name]
    family = the_family(task)
    for number, start in enumerate(family.space.starts):
        picked = family.space.exactly(start) | {"precision": EXACT[number % len(EXACT)]}
        off, eager = pool.submit(error, family.source(picked), task.source).result()
        assert off < 10 * eager + 1e-6, picked


@pytest.mark.parametrize("precision", EXACT)
@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
@pytest.mark.parametrize("name", ["turned", "few"])
def test_infinities_and_nan_come_out_where_eager_has_them(pool, name, value, precision):
    task = TASKS[name]
    lines = rf"x = \1\n    x.flatten()[50] = float('{value}')\n    return [x]\n"
    source = re.sub(r"return \[(.*)\]\n", lines, task.source, count=1)
    assert source != task.source
    assert ran(pool, task, precision, source)[0] < 1e-5


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x6"])
def test_numbers_that_a_part_cannot_hold_make_no_other_row_worse(precision):
    largest = np.finfo(np.float32).max
    a, b = np.random.default_rng(0).standard_normal((2, 16, 16)).astype(np.float32)
    a[3, 5] = largest
    with np.errstate(all="ignore"):
        found, exact = tensor_cores.product(a, b, precision), a.astype(np.float64) @ b
    others = np.arange(16) != 3
    assert not np.isfinite(found[3]).any()
    assert np.allclose(found[others], exact[others], 1e-5, 1e-5)


@pytest.mark.parametrize("precision", EXACT)
def test_half_precision_is_multiplied_as_it_is(pool, precision):
    half = [ran(pool, TASKS["strided"], each, dtype="float16")[0] for each in ("tf32", precision)]
    assert half[0] == half[1]


def test_a_task_of_half_precision_has_no_choice_of_it():
    (workload,) = TASKS["strided"].workloads
    for dtype, has in (("float16", False), ("bfloat16", False), ("float32", True), (None, True)):
        task = replace(TASKS["strided"], workloads=(replace(workload, dtype=dtype),))
        family = the_family(task)
        assert ("precision" in family.space.defaults) is has
        compile(family.source(family.space.defaults), "c.py", "exec")


@pytest.mark.parametrize("name", ["strided", "channels", "moments"])
def test_only_tf32_rounds_its_copies_and_asks_whether_it_may(name):
    family = the_family(TASKS[name])
    for precision in ("tf32", *EXACT):
        text = family.source(family.space.defaults | {"precision": precision})
        assert ("rounded_to_tf32" in text) is (precision == "tf32")
        assert ("allow_tf32" in text) is (precision == "tf32")


def test_what_is_exact_begins_smaller_and_says_so():
    family = the_family(TASKS["strided"])
    first = family.space.exactly(family.space.defaults)
    assert {name: first[name] for name in ("precision", "channels", "stages")} == {
        "precision": "bf16x6", "channels": "64", "stages": "3",
    }  # fmt: skip
    assert "precision bf16x6 (how float32 is multiplied" in family.words(first)
    assert family.space.named("precision").safe == "bf16x6"
    assert first in family.space.starts


def choices(task):
    space = the_family(task).space
    listed = [each.choices for each in space.parameters]
    return [
        dict(zip([each.name for each in space.parameters], values, strict=True))
        for values in product(*listed)
    ]


def test_every_exact_tile_fits_registers_and_shared_memory():
    for each in choices(TASKS["strided"]):
        made = fitted(each)
        pixels, channels, depth, warps, stages = (
            int(made[name]) for name in ("pixels", "channels", "depth", "warps", "stages")
        )
        if each["precision"] == "tf32":
            assert made == each
            continue
        assert 64 <= pixels <= int(each["pixels"])
        assert 16 <= channels <= int(each["channels"])
        assert pixels * channels <= most_sums(made) == 64 * 32 * warps <= 64 * 32 * 8
        assert depth <= 32
        parts = {"tf32x3": 8, "bf16x6": 6, "ieee": 0}[each["precision"]] * channels * depth
        assert stages >= 2
        assert (stages - 1) * 4 * (pixels + channels) * depth + parts <= SHARED


WHOLE = a_task("return torch.amax(self.conv(x), dim=1)", init="self.conv = nn.Conv2d(16, 200, 3)",
               inputs="torch.randn(1, 16, 20, 20)")  # fmt: skip


@pytest.mark.parametrize("warps", ["1", "4", "16"])
def test_a_program_that_has_all_channels_has_the_warps_that_hold_them(tmp_path, monkeypatch, warps):
    picked = chosen(WHOLE, "bf16x6", warps=warps, pixels="256")
    source = the_family(WHOLE).source(picked)
    found = launches(source, WHOLE, tmp_path, monkeypatch, torch.float32)
    (made,) = [given for function, _, given in found if function.__name__ == "convolve"]
    assert (made["BC"], made["BP"], made["num_warps"]) == (256, 64, 8)


def for_hopper(task, picked, tmp_path, monkeypatch, dtype=torch.float32):
    """What a choice launches, compiled."""
    source = the_family(task).source(picked)
    found = launches(source, task, tmp_path, monkeypatch, dtype)
    unlike = {str((f.__name__, g)): (f, a, g) for f, a, g in found}
    return {f"{f.__name__} {i}": compiled(f, a, g) for i, (f, a, g) in enumerate(unlike.values())}


@pytest.mark.parametrize("precision", EXACT)
@pytest.mark.parametrize("name", ["strided", "turned", "channels"])
def test_what_is_exact_compiles_for_hopper(name, precision, tmp_path, monkeypatch):
    made = for_hopper(TASKS[name], chosen(TASKS[name], precision), tmp_path, monkeypatch)
    assert max(each.metadata.shared for each in made.values()) <= SHARED
    for kernel, each in made.items():
        assert not below_float32(precisions(each.asm["ptx"]))
        if not kernel.startswith("convolve"):
            continue
        kind = {"tf32x3": "tf32.tf32", "bf16x6": "bf16.bf16"}.get(precision)
        assert (kind is None) is ("wgmma.mma_async" not in each.asm["ptx"])
        assert kind is None or f".f32.{kind}" in each.asm["ptx"]
        # What an infinity leaves in the small products is dropped before the last one.
        dropped = "arith.cmpf uno" in each.asm["ttgir"]
        assert dropped is (kind is not None)


@pytest.mark.slow
@pytest.mark.parametrize("precision", EXACT)
@pytest.mark.parametrize("name", MIXING | REDUCED)
def test_every_exact_form_compiles_for_hopper(name, precision, tmp_path, monkeypatch):
    task = (MIXING | REDUCED)[name]
    large = the_family(task).space.defaults | {"precision": precision}
    for picked in (chosen(task, precision), large):
        found = for_hopper(task, picked, tmp_path, monkeypatch)
        assert max(each.metadata.shared for each in found.values()) <= SHARED
    found = for_hopper(task, large, tmp_path, monkeypatch, torch.bfloat16)
    assert all("tf32" not in each.asm["ptx"] for each in found.values())
