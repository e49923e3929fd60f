"""The polynomials of the CPU templates against float64."""

import math

import numpy as np
import pytest

from kernelsmith.kernels import cpp
from kernelsmith.propose.rules import cpp_prelude as prelude

FUNCTIONS = {
    "exp": (np.exp, -120, 95), "log": (np.log, 1e-42, 1e30), "log1p": (np.log1p, 0, 1e6),
    "tanh": (np.tanh, -15, 15), "erf": (np.vectorize(math.erf), -6, 6),
    "sin": (np.sin, -1000, 1000), "cos": (np.cos, -1000, 1000),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80),
}  # fmt: skip


def computed(name: str, x: np.ndarray, width: int) -> np.ndarray:
    text = "#include <vector>\n"
    text += prelude.VECTORS.format(width=width, unroll=2, store=prelude.STORE["plain"])
    text += prelude.SIMPLE + prelude.functions({name}, polynomial=True)
    text += f"""extern "C" void run(const float* x, float* y, int64_t n) {{
      sweep(n, [&](auto at, int) {{ store(y, at, v{name}(load(x, at))); }});
    }}"""
    y = np.empty_like(x)
    cpp(text, flags=["-fno-math-errno", "-fno-trapping-math"]).run(
        x.ctypes.data, y.ctypes.data, x.size
    )
    return y


def points(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    if low > 0:
        found = np.exp(rng.uniform(math.log(low), math.log(high), 20001))
    else:
        found = np.concatenate([rng.uniform(low, high, 10001), rng.normal(size=10000) * 0.01])
        found = found[(found >= low) & (found <= high)]
    return found.astype(np.float32)


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_polynomial_stays_within_a_few_units_in_the_last_place(name, width):
    exact, low, high = FUNCTIONS[name]
    x = points(low, high)
    with np.errstate(over="ignore", under="ignore"):
        want = exact(x.astype(np.float64))
        unit = np.spacing(np.abs(want.astype(np.float32)))
        got = computed(name, x, width)
    inside = np.isfinite(unit)
    assert np.array_equal(np.isinf(got), ~inside)
    off = np.abs(got[inside].astype(np.float64) - want[inside]) / unit[inside]
    assert off.max() <= (2.5 if name in ("exp", "log") else 8.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_and_nan_come_out_as_they_should(name):
    exact = FUNCTIONS[name][0]
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -2.0], dtype=np.float32)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64)).astype(np.float32)
    got = computed(name, x, 16)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.allclose(got, want, rtol=1e-5, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_far_out_it_is_exactly_one_so_that_nothing_is_left_to_multiply_by_infinity(name, width):
    x = np.array([9.5, 40.0, 1e30, np.inf, -9.5, -40.0, -1e30, -np.inf], dtype=np.float32)
    assert np.array_equal(computed(name, x, width), np.sign(x))
    near = np.linspace(0, 9, 20001, dtype=np.float32)
    assert computed(name, near, width).max() == 1
    assert computed(name, -near, width).min() == -1
