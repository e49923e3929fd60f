"""Sums by halves: exact where they can be, near where they cannot, in every shape."""

import numpy as np
import pytest

pytest.importorskip("triton")

from kernelsmith.evaluate.worker.bfloat16 import narrowed, widened
from kernelsmith.evaluate.worker.sums import by_halves


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("keep", [True, False])
def test_they_are_numpy_s_in_every_shape(axis, keep):
    values = np.random.default_rng(1).integers(-99, 99, (2, 8, 4)).astype(np.float32)
    found = by_halves(values, axis, keep=keep)
    wanted = values.sum(axis=axis, keepdims=keep)
    assert found.shape == wanted.shape
    assert (found == wanted).all()


def test_errors_do_not_grow_with_the_count():
    values = np.random.default_rng(2).random((4096, 2), np.float32)
    exact = values.sum(axis=0, dtype=np.float64)
    ours = np.abs(by_halves(values, 0, keep=False) - exact).max()
    in_a_row = values[0].copy()
    for row in values[1:]:
        in_a_row += row
    assert ours < np.abs(in_a_row - exact).max() / 4


def test_bfloat16_is_rounded_whenever_two_are_put_together():
    values = narrowed(np.array([256.0, 1.0, 1.0, 1.0], np.float32))
    found = widened(by_halves(values, 0, keep=False, bfloat16=True))
    assert found == 258.0  # 257 is none of them, so 256; and 1 + 1 is 2
