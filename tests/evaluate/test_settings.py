"""How much each effort asks for, on a processor and on a device."""

import pytest

from kernelsmith.evaluate.settings import GpuSettings, Settings, effort

EFFORTS = ("quick", "usual", "thorough")


def test_the_usual_effort_on_the_cpu_is_the_default():
    assert effort("usual") == effort("usual", "cpu") == Settings()


def test_on_the_cpu_a_search_looks_at_several_process_pairs():
    assert effort("quick").stop.max_pairs == 1
    assert effort("usual").stop.min_pairs >= 3
    assert effort("thorough").stop.target_width == 0.02


def test_on_a_gpu_a_search_makes_do_with_one_pair_and_a_champion_does_not():
    for name in ("quick", "usual"):
        for backend in ("triton", "cuda", "maca", "maca-emulated"):
            stop = effort(name, backend).stop
            assert (stop.min_pairs, stop.max_pairs) == (1, 1)
    stop = effort("thorough", "triton").stop
    assert stop.min_pairs >= 3
    assert stop.target_width == 0.01


def test_more_effort_on_a_gpu_means_more_of_everything_that_is_measured():
    found = [effort(name, "triton").gpu for name in EFFORTS]
    for field in ("samples", "rounds", "calls", "alone", "warmups"):
        counts = [getattr(each, field) for each in found]
        assert counts == sorted(counts), field
    assert found[2].rounds > 1, "placement moves short kernels"


@pytest.mark.parametrize("backend", ["cpu", "triton", "cuda", "maca", "maca-emulated"])
@pytest.mark.parametrize("name", EFFORTS)
def test_no_effort_gives_up_a_check(name, backend):
    found = effort(name, backend)
    assert found.trials >= 5
    assert found.static
    assert found.robust
    gpu = found.gpu
    assert (gpu.graph, gpu.rotate, gpu.interleave, gpu.outliers) == (True, True, True, True)


@pytest.mark.parametrize("field", ["samples", "rounds", "alone", "max_launches"])
def test_nothing_is_timed_by_no_batches(field):
    with pytest.raises(ValueError, match="some batches, rounds and launches"):
        GpuSettings(**{field: 0})


def test_plain_calls_can_be_left_out():
    assert GpuSettings(calls=0).calls == 0
