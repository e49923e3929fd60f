"""What feedback about kernels makes of the next mutation."""

import random

import pytest
from rule_briefs import DEVICE, H200, Painted, a_kernel, a_timing, an_exemplar
from rule_tasks import KNOWN

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Coverage, Roofline
from kernelsmith.propose.rules.diagnosis import Diagnosis, diagnosed, same_kernel
from kernelsmith.propose.rules.levers import Lever, lever_named
from kernelsmith.propose.rules.mutation import moves
from kernelsmith.propose.rules.occupancy import limits_of, occupancy, programs
from kernelsmith.propose.rules.space import Parameter, Space
from kernelsmith.propose.rules.statistics import Statistics


def an_evaluation(**changes):
    return an_exemplar(KNOWN["softmax"], "class ModelNew: ...", **changes).evaluation


def a_space(*parameters):
    return Space(template="made", parameters=parameters, seeds=())


def sizes(name, kernel=""):
    return Parameter(
        name=name, choices=("1", "2", "4", "8", "16"), default="4", why="why", kernel=kernel
    )


def drawn(space, evaluation, count=200):
    """How often each parameter was changed, up and down."""
    diagnosis = diagnosed(evaluation, H200)
    ups, downs = {}, {}
    for seed in range(count):
        (move,) = moves(
            space, space.defaults, diagnosis=diagnosis, others=(), known=Statistics(),
            rng=random.Random(seed), count=1,
        )  # fmt: skip
        for name, value in move.chosen.items():
            if value != "4":
                where = ups if int(value) > 4 else downs
                where[name] = where.get(name, 0) + 1
    return ups, downs


def test_spills_ask_for_smaller_tiles_or_more_warps():
    evaluation = an_evaluation(kernels=(a_kernel(spills=64, registers=255),))
    ups, downs = drawn(a_space(sizes("block"), sizes("warps"), sizes("evict")), evaluation)
    assert downs["block"] > 3 * ups.get("block", 0)
    assert ups["warps"] > 3 * downs.get("warps", 0)
    assert downs["block"] > 2 * (ups.get("evict", 0) + downs.get("evict", 0))


def test_the_kernel_that_takes_most_of_the_time_is_changed_most():
    kernels = (a_kernel(name="first", share=0.9), a_kernel(name="second", share=0.1))
    space = a_space(sizes("warps_a", "first"), sizes("warps_b", "second"))
    ups, downs = drawn(space, an_evaluation(kernels=kernels))
    first, second = (ups.get(n, 0) + downs.get(n, 0) for n in ("warps_a", "warps_b"))
    assert first > 2 * second


def test_too_few_programs_ask_for_smaller_tiles():
    evaluation = an_evaluation(kernels=(a_kernel(grid=(40, 1, 1)),))
    ups, downs = drawn(a_space(sizes("tile"), sizes("programs")), evaluation)
    assert downs["tile"] > ups.get("tile", 0)
    assert ups["programs"] > downs.get("programs", 0)


def test_a_library_that_takes_most_of_the_time_points_at_the_product():
    evaluation = an_evaluation(coverage=Coverage(own=0.1, library=0.9, samples=9))
    advice = diagnosed(evaluation, H200).advice
    assert max(advice, key=lambda each: each.weight).lever is Lever.PRODUCT
    assert "90%" in advice[0].why


def test_little_bandwidth_asks_for_larger_blocks():
    rooflines = (Roofline(workload="default", bytes=1 << 30, floor_us=10, bandwidth_share=0.3),)
    evaluation = an_evaluation(kernels=(a_kernel(),), rooflines=rooflines)
    ups, downs = drawn(a_space(sizes("block")), evaluation)
    assert ups["block"] > 2 * downs.get("block", 0)


def test_a_short_call_points_at_how_work_is_handed_out():
    pulled = diagnosed(an_evaluation(timing=a_timing(us=5.0)), DEVICE)
    assert pulled.pull(sizes("threads"))[0] > pulled.pull(sizes("math"))[0]


def test_nothing_seen_is_no_advice():
    assert diagnosed(an_evaluation(), DEVICE) == Diagnosis()


def test_shared_memory_that_runs_out_asks_for_fewer_stages():
    evaluation = an_evaluation(kernels=(a_kernel(shared_bytes=200 << 10),))
    (first, *_) = diagnosed(evaluation, H200).advice
    assert (first.lever, first.step) == (Lever.STAGES, -1)
    assert "shared memory" in first.why


@pytest.mark.parametrize(
    ("registers", "shared", "blocks", "by"),
    [(32, 0, 16, "threads"), (255, 0, 2, "registers"), (32, 100 << 10, 2, "shared memory")],
)
def test_occupancy_names_what_runs_out_first(registers, shared, blocks, by):
    limits = limits_of(H200)
    kernel = a_kernel(registers=registers, shared_bytes=shared, block=(128, 1, 1))
    found = occupancy(kernel, limits)
    assert found.by == by
    assert found.blocks == blocks


def test_limits_are_known_of_known_devices_only():
    limits = limits_of(H200)
    assert (limits.processors, limits.shared_bytes) == (132, 228 << 10)
    assert limits_of(Device(kind="cuda", name="Tesla T4")).threads == 1024
    assert limits_of(Device(kind="cuda", name="Unheard Of")) is None
    assert limits_of(DEVICE) is None
    assert limits_of(None) is None
    assert occupancy(a_kernel(registers=None), limits) is None
    assert programs(a_kernel(grid=())) == 0


@pytest.mark.parametrize(
    ("name", "lever"),
    [
        ("warps", Lever.WARPS), ("k2_warps", Lever.WARPS), ("XBLOCK", Lever.TILE),
        ("block_m", Lever.TILE), ("R0_BLOCK", Lever.TILE), ("stages", Lever.STAGES),
        ("form", Lever.FORM), ("product0", Lever.PRODUCT), ("serial_below", Lever.THREADS),
        ("schedule", Lever.THREADS), ("programs", Lever.PROGRAMS), ("math", Lever.EXACTNESS),
        ("colour", Lever.OTHER),
    ],
)  # fmt: skip
def test_a_lever_is_guessed_from_the_name(name, lever):
    assert lever_named(name) is lever


def test_kernels_are_known_under_the_names_of_reports():
    assert same_kernel("rows", "rows")
    assert same_kernel("rows", "rows_0d1d2d")
    assert not same_kernel("rows", "rowsum")


def test_a_painted_family_has_parameters_of_a_kernel():
    assert Painted().space.named("warps").kernel == "paint"
