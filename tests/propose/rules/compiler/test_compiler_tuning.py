"""What a kernel of the compiler is launched with is seen when it is launched."""

from types import SimpleNamespace

import pytest

triton = pytest.importorskip("triton")

from torch._inductor.runtime import triton_heuristics  # noqa: E402
from torch._inductor.runtime.hints import DeviceProperties  # noqa: E402

from kernelsmith.propose.rules.compiler.tuning import launched, tuned  # noqa: E402

NAME = "triton_poi_fused_add_0"


def kernel_with(*configs):
    """One of the compiler's own tuners, whose choices stand but were never built."""
    device = DeviceProperties(
        type="cuda", index=0, multi_processor_count=132, cc=90, major=9,
        regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, warp_size=32,
    )  # fmt: skip
    made = triton_heuristics.pointwise(
        size_hints={"x": 1024}, filename=__file__, inductor_meta={"kernel_name": NAME},
        triton_meta={"signature": {}, "device": device, "configs": [], "constants": {}},
    )(triton.jit(add))  # fmt: skip
    made.launchers = [Launcher(each) for each in configs]
    return made


def add(a, XBLOCK):
    pass


class Launcher(SimpleNamespace):
    """What was built of one configuration."""

    def __init__(self, config):
        super().__init__(config=config, store_cubin=False)


def config(block, warps):
    return triton.Config({"XBLOCK": block}, num_warps=warps, num_stages=1)


def test_a_launched_kernel_is_noted_even_if_its_launch_fails():
    made = kernel_with(config(512, 8))  # nothing was built, so nothing can run
    with launched() as found, pytest.raises((AttributeError, TypeError)):
        made.run(stream=0)
    assert found == [made]
    assert tuned(found) == {NAME: {"XBLOCK": 512, "num_warps": 8, "num_stages": 1}}


def test_nobody_is_noted_afterwards():
    own = triton_heuristics.CachingAutotuner.run
    with launched() as found:
        assert triton_heuristics.CachingAutotuner.run is not own
    assert triton_heuristics.CachingAutotuner.run is own
    assert found == []


def test_a_kernel_with_several_choices_left_has_none():
    assert tuned([kernel_with(config(512, 8), config(1024, 4))]) == {}
