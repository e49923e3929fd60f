"""Kernels of bfloat16 in Triton's interpreter say what torch says."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from kernelsmith.domain.candidate import Candidate  # noqa: E402
from kernelsmith.domain.evaluation import Verdict  # noqa: E402
from kernelsmith.domain.task import Task  # noqa: E402
from kernelsmith.evaluate.backends.triton import InterpreterBackend  # noqa: E402
from kernelsmith.evaluate.harness import judge  # noqa: E402

RUN = """
import json, torch, triton, triton.language as tl
from kernelsmith.evaluate.worker import bfloat16, sums

bfloat16.install()
sums.install()
KERNELS
made = torch.Generator().manual_seed(3)
a, b = (torch.randn(16, 16, generator=made).bfloat16() for _ in range(2))
a[0, :4] = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0])
found = []
for kernel, kind in RUNS:
    y = torch.zeros(16, 16, dtype=kind)
    kernel[(1,)](a, b, y, 16)
    found.append(y.double().tolist())
print(json.dumps([a.double().tolist(), b.double().tolist(), found]))
"""
KERNEL = """
@triton.jit
def kernel{number}(a, b, y, n: tl.constexpr):
    at = tl.arange(0, n)[:, None] * n + tl.arange(0, n)[None, :]
    a, b = tl.load(a + at), tl.load(b + at)
    tl.store(y + at, {called})
"""


def _halved(x, dim):
    while x.shape[dim] > 1:
        first, second = x.chunk(2, dim)
        x = first + second
    return x


CALLS = {
    "a + b": lambda a, b: a + b,
    "a * b - a": lambda a, b: a * b - a,
    "-a": lambda a, b: -a,
    "a * 3": lambda a, b: a * 3,
    "tl.abs(a)": lambda a, b: a.abs(),
    "tl.where(a > b, a, b)": lambda a, b: torch.where(a > b, a, b),
    "(a > b).to(tl.float32)": lambda a, b: (a > b).float(),
    "(a > b) * 1.5": lambda a, b: (a > b) * 1.5,
    "tl.sum((a > b).to(tl.float32)) + b": lambda a, b: (a > b).float().sum() + b.float(),
    "tl.where(a > b, 1.5, -3.0).to(tl.float8e5).to(tl.bfloat16)": lambda a, b: torch.where(
        a > b, 1.5, -3.0
    ),
    "(b.to(tl.float32) * 1.01).to(tl.bfloat16, fp_downcast_rounding='rtz')": lambda a, b: (
        (b.float() * 1.01).view(torch.int32) >> 16 << 16
    ).view(torch.float32),
    "(a < b).to(tl.bfloat16)": lambda a, b: (a < b).bfloat16(),
    "tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)": torch.maximum,
    "tl.exp(b.to(tl.float32)).to(tl.bfloat16)": lambda a, b: b.float().exp().bfloat16(),
    "(a.to(tl.float32) * 1.01).to(tl.bfloat16)": lambda a, b: (a.float() * 1.01).bfloat16(),
    "(b * 100).to(tl.int32).to(tl.bfloat16)": lambda a, b: (b * 100).int().bfloat16(),
    "b.to(tl.float16)": lambda a, b: b.half().bfloat16(),
    "b.to(tl.float16).to(tl.bfloat16)": lambda a, b: b.half().bfloat16(),
    "tl.sum(b, axis=1)[:, None] + b": lambda a, b: _halved(b, 1) + b,
    "tl.sum(b, axis=0, keep_dims=True) + b": lambda a, b: _halved(b, 0) + b,
    "tl.cumsum(b, axis=1)": lambda a, b: b.float().cumsum(1).bfloat16(),
    "tl.argmax(b, axis=1)[:, None] + b * 0": lambda a, b: b.argmax(1, True) + b * 0,
    "tl.sum(b) + b * 0": lambda a, b: _halved(b.flatten(), 0) + b * 0,
    "tl.max(b, axis=0)[None, :] + b * 0": lambda a, b: b.amax(0, keepdim=True) + b * 0,
    "tl.dot(b, b)": lambda a, b: b.float() @ b.float(),
    "tl.dot(b, tl.trans(b)).to(tl.bfloat16)": lambda a, b: (b.float() @ b.float().T).bfloat16(),
}
WIDE = ("tl.dot(b, b)", "(a > b)", "tl.sum((a > b)")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """All in one process: torch and Triton take seconds to start."""
    kernels = [KERNEL.format(number=i, called=called) for i, called in enumerate(CALLS)]
    kinds = ["float32" if called.startswith(WIDE) else "bfloat16" for called in CALLS]
    runs = ", ".join(f"(kernel{i}, torch.{kind})" for i, kind in enumerate(kinds))
    path = tmp_path_factory.mktemp("interpreted") / "kernels.py"
    path.write_text(RUN.replace("KERNELS", "\n".join(kernels)).replace("RUNS", f"[{runs}]"))
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"}, check=False,
    )  # fmt: skip
    assert not ended.returncode, ended.stderr[-2000:]
    a, b, made = json.loads(ended.stdout)
    a, b = (torch.tensor(each, dtype=torch.float64).bfloat16() for each in (a, b))
    return a, b, dict(zip(CALLS, made, strict=True))


@pytest.mark.parametrize("called", CALLS)
def test_operators_calculate_in_float32_and_round_to_the_nearest(found, called):
    a, b, made = found
    wanted = CALLS[called](a, b).double()
    got = torch.tensor(made[called], dtype=torch.float64)
    assert torch.allclose(got, wanted, rtol=1e-6, atol=1e-6, equal_nan=True), got - wanted


TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x * x + x)


def get_inputs():
    return [torch.randn(4, 64, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    given = tl.load(x + at)
    tl.store(y + at, tl.maximum(given * given + given, FLOOR))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.numel() // 64,)](x, y, N=64)
        return y
"""


@pytest.mark.parametrize(("floor", "verdict"), [("0.0", Verdict.PASSED), ("0.1", Verdict.WRONG)])
def test_the_judge_tells_right_kernels_from_wrong_ones(floor, verdict):
    backend = InterpreterBackend()
    try:
        source = CANDIDATE.replace("FLOOR", floor)
        candidate = Candidate(backend="triton", source=source)
        said = judge(Task(name="relu", source=TASK), candidate, backend=backend)
    finally:
        backend.close()
    assert said.verdict is verdict, said.message
