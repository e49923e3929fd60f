"""The functions of compiler seeds against float64, in loops as the kernels have them."""

import math

import numpy as np
import pytest
import torch

from kernelsmith.kernels import cpp
from kernelsmith.propose.rules.compiler import cpp_math as prelude

FUNCTIONS = {
    "exp": (np.exp, -120, 95), "log": (np.log, 1e-42, 1e30), "log1p": (np.log1p, 0, 1e6),
    "tanh": (np.tanh, -15, 15), "erf": (np.vectorize(math.erf), -6, 6),
    "expm1": (np.expm1, -100, 88), "sin": (np.sin, -300, 300), "cos": (np.cos, -300, 300),
}  # fmt: skip
FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-mprefer-vector-width=512"]
ENTRY = """extern "C" void run_{name}(const float* x, float* y, int64_t n) {{
  sweep<64>(0, n, [&](int64_t i, int) {{ y[i] = fn::{name}(x[i]); }});
}}
"""


@pytest.fixture(scope="module")
def library():
    text = prelude.functions(set(FUNCTIONS), polynomial=True) + prelude.SWEEP
    return cpp(text + "".join(ENTRY.format(name=name) for name in FUNCTIONS), flags=FLAGS)


def computed(library, name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    getattr(library, f"run_{name}")(x.ctypes.data, y.ctypes.data, x.size)
    return y


def points(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    if low > 0:
        found = np.exp(rng.uniform(math.log(low), math.log(high), 20001))
    else:
        found = np.concatenate([rng.uniform(low, high, 10001), rng.normal(size=10000) * 0.01])
        found = found[(found >= low) & (found <= high)]
    return found.astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_polynomial_stays_within_a_few_units_in_the_last_place(library, name):
    exact, low, high = FUNCTIONS[name]
    x = points(low, high)
    with np.errstate(over="ignore", under="ignore"):
        want = exact(x.astype(np.float64))
        unit = np.spacing(np.abs(want.astype(np.float32)))
    got = computed(library, name, x)
    inside = np.isfinite(unit)
    assert np.array_equal(np.isinf(got), ~inside)
    off = np.abs(got[inside].astype(np.float64) - want[inside]) / unit[inside]
    assert off.max() <= (2.5 if name in ("exp", "log") else 8.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_and_nan_come_out_as_they_should(library, name):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -2.0], dtype=np.float32)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name][0](x.astype(np.float64))
    got = computed(library, name, x)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(np.isinf(got), np.isinf(want))


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_far_out_nothing_is_left_of_one_minus_the_function(library, name):
    x = np.array([-1e30, -50.0, -9.1, 9.1, 50.0, np.inf], dtype=np.float32)
    assert np.array_equal(computed(library, name, x), np.sign(x))


@pytest.mark.parametrize(("kind", "c"), [("float32", "float"), ("int64", "int64_t")])
def test_the_larger_of_two_is_nan_if_either_is_and_integers_are_compared_exactly(kind, c):
    entry = """extern "C" void run(const {0}* a, const {0}* b, {0}* y, {0}* z, int64_t n) {{
      sweep<64>(0, n, [&](int64_t i, int) {{ y[i] = larger(a[i], b[i]); }});
      sweep<64>(0, n, [&](int64_t i, int) {{ z[i] = smaller(a[i], b[i]); }});
    }}"""
    library = cpp(prelude.SIMPLE + prelude.SWEEP + entry.format(c), flags=FLAGS)
    odd = [np.nan, np.inf, -np.inf, 0.0, 2.5] if kind == "float32" else [2**62, 2**62 + 1, -1, 0]
    values = np.array(odd, dtype=kind)
    a, b = (np.ascontiguousarray(each.ravel()) for each in np.meshgrid(values, values))
    most, least = np.empty_like(a), np.empty_like(a)
    library.run(*(each.ctypes.data for each in (a, b, most, least)), a.size)
    np.testing.assert_array_equal(most, np.maximum(a, b))
    np.testing.assert_array_equal(least, np.minimum(a, b))


@pytest.mark.parametrize(("begin", "end"), [(0, 16), (0, 1), (1, 55), (3, 1000), (64, 81)])
def test_between_borders_every_element_is_reached_and_none_beyond(begin, end):
    lanes = 16 if end - begin >= 16 else 1
    entry = f"""extern "C" void run(float* y) {{
      const auto each = [=](int64_t i, int) {{ y[i] = 1.0f + float(i); }};
      cover<{lanes}>({begin}, {end}, each);
    }}
    extern "C" void go(float* y) {{
      along({begin}, {end}, [=](int64_t i, int) {{ y[i] = 1.0f + float(i); }});
    }}"""
    library = cpp(prelude.PARTS + entry, flags=FLAGS)
    want = np.zeros(1024, dtype=np.float32)
    want[begin:end] = np.arange(begin, end) + 1
    for run in (library.run, library.go):
        got = np.zeros_like(want)
        run(got.ctypes.data)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("size", [1, 15, 64, 65, 1000])
def test_lanes_gather_every_element_once(size):
    text = prelude.SIMPLE + prelude.operators({"sum", "max"}) + prelude.LANES + prelude.SWEEP
    text += """extern "C" void run(const float* x, float* y, int64_t n) {
      Lanes<Plus, float, 64> sum;
      Lanes<Largest, float, 64> top;
      sweep<64>(0, n, [&](int64_t i, int k) { sum.add(k, x[i]); top.add(k, x[i]); });
      y[0] = sum.total();
      y[1] = top.total();
    }"""
    x = np.arange(size, dtype=np.float32) - 7
    y = np.empty(2, dtype=np.float32)
    cpp(text, flags=FLAGS).run(x.ctypes.data, y.ctypes.data, size)
    assert y.tolist() == [x.sum(), x.max()]


@pytest.mark.parametrize("shift", [0, 1, 7])
def test_a_stream_writes_all_of_an_unaligned_row_and_no_more(shift):
    text = prelude.SWEEP + prelude.STREAM
    text += """extern "C" void run(const float* x, float* y, int64_t n) {
      stream<64>(y, 0, n, [&](int64_t i) { return x[i] * 2.0f; });
    }"""
    x = np.arange(701, dtype=np.float32)
    y = np.full(800, -1, dtype=np.float32)
    cpp(text, flags=FLAGS).run(x.ctypes.data, y.ctypes.data + 4 * shift, x.size)
    assert np.array_equal(y[shift : shift + 701], x * 2)
    assert (np.delete(y, np.arange(shift, shift + 701)) == -1).all()


BACK = """extern "C" void back_{name}(const float* x, float* y, {name}_t* z, int64_t n) {{
  sweep<64>(0, n, [&](int64_t i, int) {{
    const {name}_t made = {name}_of(x[i]);
    z[i] = made;
    y[i] = float(made);
  }});
}}
"""


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64"])
def test_whole_numbers_of_floats_are_torchs_and_stay_so_back_in_floats(name):
    library = cpp(prelude.FROM_FLOATS + prelude.SWEEP + BACK.format(name=name), flags=FLAGS)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e9, -3e9, 2147483648.0, -2147483648.0, 1e19, -1e19]
    x = np.array([*odd, *np.linspace(-700, 700, 2001), *np.logspace(0, 30, 700)], np.float32)
    y, z = np.empty_like(x), np.empty(x.size, name)
    getattr(library, f"back_{name}")(x.ctypes.data, y.ctypes.data, z.ctypes.data, x.size)
    want = torch.from_numpy(x).to(getattr(torch, name)).numpy()
    within = np.isfinite(x) & (np.abs(x) < 2**31)
    assert (z == want)[within].all()
    assert (z[0], y[0]) == (want[0], float(want[0]))  # of NaN
    assert (y == z.astype(np.float32)).all()
