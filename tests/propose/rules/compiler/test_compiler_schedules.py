"""Launch parameters that are guessed or scaled stay within what generated masks allow."""

import math
import subprocess
import sys

import pytest
from compiled_cases import ARGUMENTS, captured
from hypothesis import given
from hypothesis import strategies as st

from kernelsmith.propose.rules.compiler import helpers, launching
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.compiler.schedules import LARGEST, Hints, chosen, power

SIZES = st.one_of(
    st.fixed_dictionaries({"x": st.integers(1, 2**31)}),
    st.fixed_dictionaries({"x": st.integers(1, 2**20), "y": st.integers(1, 2**20)}),
    st.fixed_dictionaries({"x": st.integers(1, 2**20), "r0_": st.integers(1, 2**20)}),
)


@given(SIZES, st.sampled_from(["INNER", "OUTER", "OUTER_TINY", "DEFAULT"]), st.booleans())
def test_guessed_blocks_are_powers_of_two_within_the_sizes(sizes, hint, whole):
    schedule = "reduction" if "r0_" in sizes else "pointwise"
    found = chosen(Hints(schedule=schedule, sizes=sizes, reduction=hint, whole=whole, loads=3))
    for name, size in sizes.items():
        block = found[f"{name.upper()}BLOCK"]
        assert block == power(block)
        assert 1 <= block <= min(power(size), LARGEST[f"{name.upper()}BLOCK"])
    assert found["num_warps"] in (1, 2, 4, 8, 16)


@given(st.integers(1, 2**20), st.integers(4, 10), st.sampled_from(["INNER", "OUTER"]))
def test_persistent_rows_fit_into_registers(rows, exponent, hint):
    length = 2**exponent
    sizes = {"x": rows, "r0_": length}
    found = chosen(Hints(schedule="persistent", sizes=sizes, reduction=hint))
    assert found["XBLOCK"] * length <= 8192
    assert found["XBLOCK"] <= power(rows)


def test_small_and_large_sums_are_launched_as_the_compiler_would():
    inner = Hints(schedule="reduction", sizes={"x": 64, "r0_": 8192}, reduction="INNER", whole=True)
    assert chosen(inner) == {"XBLOCK": 1, "R0_BLOCK": 8192, "num_warps": 16, "num_stages": 1}
    flat = Hints(schedule="pointwise", sizes={"x": 196608})
    assert chosen(flat) == {"XBLOCK": 1024, "num_warps": 4, "num_stages": 1}
    square = Hints(schedule="pointwise", sizes={"y": 4096, "x": 3})
    assert math.prod((chosen(square)["XBLOCK"], chosen(square)["YBLOCK"])) == 1024


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "batched_matmul"])
def test_scaled_launches_stay_legal(name):
    call = read_call(captured(name))
    for each in launching.parameters([call], [call]):
        for value in each.choices:
            for kernel, launch in launching.chosen(call, {each.name: value}).items():
                sizes = dict(next(k for k in call.kernels if k.name == kernel).sizes)
                for block, limit in LARGEST.items():
                    if block in launch:
                        prefix = block.removesuffix("BLOCK").lower()
                        assert 1 <= launch[block] <= min(limit, power(sizes[prefix]))


EXACT = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import importlib.util, torch
spec = importlib.util.spec_from_file_location("own", sys.argv[1])
own = importlib.util.module_from_spec(spec)
spec.loader.exec_module(own)
for name, low, high in (("exp", -87, 88.7), ("tanh", -12, 12), ("log1p", -0.99, 1e6),
                        ("expm1", -10, 80)):
    x = torch.cat([torch.linspace(low, high, 4095), torch.tensor([1e-6])])
    out = torch.empty_like(x)
    getattr(own, f"run_{name}")[(1,)](x, out, N=4096)
    want = getattr(torch, name)(x.double())
    error = ((out.double() - want).abs() / want.abs().clamp_min(1e-30)).max().item()
    assert error < 8 * 2.0**-23, (name, error)
edge = torch.tensor([float("inf"), float("-inf"), float("nan"), 200.0, -200.0, 88.72, 0.0, 1.0])
out = torch.empty_like(edge)
own.run_exp[(1,)](edge, out, N=8)
torch.testing.assert_close(out, edge.exp(), equal_nan=True, rtol=1e-5, atol=0)
"""
RUN = """
@triton.jit
def run_{0}(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, {0}(tl.load(x + at)))
"""


@pytest.mark.slow
def test_written_out_functions_are_exact_to_a_few_units(tmp_path):
    pytest.importorskip("triton")
    names = ("exp", "tanh", "log1p", "expm1")
    path = tmp_path / "own.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n"
        + "\n\n\n".join([*helpers.written(names), *[RUN.format(name) for name in names]])
    )
    done = subprocess.run(
        [sys.executable, "-c", EXACT, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
