"""The judge's memory plan, in bytes."""

import subprocess
import sys

import pytest

from kernelsmith.evaluate.cuda.peak import Footprint, predicted_peak

F = Footprint(inputs=1600, weights=100, outputs=800, activations=160)


def test_the_plan_is_the_sum_of_its_parts():
    trusted = 1600 + 3 * 100 + 800 + 160 + 2 * (1600 + 800 + 160)
    sides = 2 * (100 + 4 * 800 + 160)
    assert predicted_peak(F, sets=4, context_bytes=7, sliced=False) == (
        trusted + 4 * 1600 + sides + 21
    )


def test_slicing_leaves_a_sixteenth_of_the_exact_run():
    whole = predicted_peak(F, sets=1, context_bytes=0, sliced=False)
    sliced = predicted_peak(F, sets=1, context_bytes=0, sliced=True)
    assert whole - sliced == 2 * 2560 - 2 * 2560 // 16


def test_beside_others_the_outputs_of_slices_stay_on_the_device():
    whole = predicted_peak(F, sets=1, context_bytes=0, sliced=False, beside=True)
    sliced = predicted_peak(F, sets=1, context_bytes=0, sliced=True, beside=True)
    assert whole - sliced == 2 * 2560 - (2 * 800 + 2 * 2560 // 8)


def test_half_precision_widens_by_four():
    extra = predicted_peak(F, sets=1, context_bytes=0, sliced=False, widening=4) - predicted_peak(
        F, sets=1, context_bytes=0, sliced=False
    )
    assert extra == 2 * (2560 + 100)


def test_sizes_are_not_negative_and_a_batch_has_a_set():
    with pytest.raises(ValueError, match="not negative"):
        Footprint(inputs=-1, weights=0, outputs=0, activations=0)
    with pytest.raises(ValueError, match="at least one input set"):
        predicted_peak(F, sets=0, context_bytes=0, sliced=False)


def test_the_judge_can_plan_without_torch():
    code = "import sys, kernelsmith.evaluate.cuda.peak; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
