"""NVIDIA's functions in Triton's interpreter, against Python's own."""

import json
import math
import os
import subprocess
import sys

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backends.triton import InterpreterBackend
from kernelsmith.evaluate.harness import judge

pytest.importorskip("triton")
RUN = """
import json, torch, triton, triton.language as tl
from kernelsmith.evaluate.worker import libdevice as ours
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as nvidia

ours.install()
KERNELS
found = []
for kernel, dtype in RUNS:
    x = torch.tensor(VALUES, dtype=dtype)
    y = torch.empty_like(x)
    kernel[(1,)](x, y, len(VALUES))
    found.append(y.double().tolist())
print(json.dumps(found))
"""
KERNEL = """
@triton.jit
def kernel{number}(x, y, n: tl.constexpr):
    at = tl.arange(0, n)
    given = tl.load(x + at)
    tl.store(y + at, {called})
"""
VALUES = [-3.5, -0.75, -(2.0**-13), 0.0, 2.0**-13, 0.3125, 1.0, 7.25]
"""Whole numbers of 2^-13: the same in either precision."""
SINGLE, DOUBLE = ("float32", 1e-6), ("float64", 1e-14)
CALLS = [
    ("libdevice.tanh(given)", math.tanh, SINGLE),
    ("nvidia.tanh(given)", math.tanh, SINGLE),
    ("tl.extra.cuda.libdevice.erf(given)", math.erf, SINGLE),
    ("libdevice.erf(given)", math.erf, DOUBLE),
    ("libdevice.expm1(given)", math.expm1, SINGLE),
    ("libdevice.cbrt(given)", math.cbrt, SINGLE),
    ("libdevice.tgamma(given + 0.25)", lambda x: math.gamma(x + 0.25), SINGLE),
    ("libdevice.log1p(given * given)", lambda x: math.log1p(x * x), SINGLE),
    ("libdevice.pow(given * given, 1.5)", lambda x: (x * x) ** 1.5, SINGLE),
    ("libdevice.fast_expf(given)", math.exp, SINGLE),
    ("libdevice.rint(given * 2)", lambda x: float(round(x * 2)), SINGLE),
    (
        "libdevice.round(given * 2)",
        lambda x: math.copysign(math.floor(abs(x * 2) + 0.5), x),
        SINGLE,
    ),
    ("libdevice.fmod(given, 2.0)", lambda x: math.fmod(x, 2.0), SINGLE),
    ("libdevice.pow(given, 3)", lambda x: x**3, SINGLE),
    ("libdevice.pow(arg0=given, arg1=given * 0 + 2)", lambda x: x**2, SINGLE),
    ("libdevice.div_rn(given, 3.0)", lambda x: x / 3, SINGLE),
    ("libdevice.normcdf(given - 8)", lambda x: math.erfc((8 - x) / 2**0.5) / 2, SINGLE),
    ("libdevice.logb(given * given + 1)", lambda x: float(math.frexp(x * x + 1)[1] - 1), DOUBLE),
    ("libdevice.isnan(given).to(tl.float32)", lambda x: 0.0, SINGLE),
    ("(libdevice.signbit(given) != 0).to(tl.float32)", lambda x: float(x < 0), SINGLE),
    ("libdevice.isfinited(given).to(tl.float64)", lambda x: 1.0, DOUBLE),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All in one process: torch and Triton take seconds to start."""
    kernels = [KERNEL.format(number=i, called=called) for i, (called, _, _) in enumerate(CALLS)]
    runs = ", ".join(f"(kernel{i}, torch.{kind})" for i, (_, _, (kind, _)) in enumerate(CALLS))
    text = RUN.replace("KERNELS", "\n".join(kernels)).replace("RUNS", f"[{runs}]")
    path = tmp_path_factory.mktemp("interpreted") / "kernels.py"
    path.write_text(text.replace("VALUES", str(VALUES)))
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"}, check=False,
    )  # fmt: skip
    assert not ended.returncode, ended.stderr[-2000:]
    return json.loads(ended.stdout)


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[called for called, _, _ in CALLS])
def test_functions_say_what_python_s_say(found, number):
    _, wanted, (_, digits) = CALLS[number]
    assert found[number] == [pytest.approx(wanted(x), rel=digits, abs=1e-12) for x in VALUES]


TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x @ x)


def get_inputs():
    return [torch.randn(16, 16)]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    place = at[:, None] * N + at[None, :]
    given = tl.load(x + place)
    made = tl.dot(given, given, input_precision="bf16x6")
    tl.store(y + place, libdevice.NAME(made))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, N=16)
        return y
"""


def judged(name):
    source = CANDIDATE.replace("NAME", name)
    backend = InterpreterBackend()
    try:
        candidate = Candidate(backend="triton", source=source)
        return judge(Task(name="tanh", source=TASK), candidate, backend=backend)
    finally:
        backend.close()


def test_a_candidate_may_use_them_and_products_by_parts():
    found = judged("tanh")
    assert found.verdict is Verdict.PASSED, found.message


def test_another_function_is_still_wrong():
    assert judged("sinh").verdict is Verdict.WRONG


def test_one_that_nobody_wrote_down_is_named():
    found = judged("ilogb")
    assert found.verdict is Verdict.CRASHED
    assert "__nv_ilogbf is not known here" in found.message
