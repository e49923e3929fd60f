"""What the processor advertises and cannot do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.processor import field, hides_tiles, onednn_limit, processor
from kernelsmith.evaluate.settings import effort

HALVES = """
import torch
class {name}(torch.nn.Module):
    def forward(self, x, y):
        return x @ y
def get_inputs():
    return [torch.rand(64, 64).bfloat16(), torch.rand(64, 64).bfloat16()]
"""


def some_info(level, *flags):
    return f"processor\t: 0\ncpuid level\t: {level}\nflags\t\t: fpu {' '.join(flags)}\n"


@pytest.mark.parametrize(
    ("info", "hidden"),
    [
        (some_info(28, "amx_tile"), True),
        (some_info(31, "amx_tile"), False),
        (some_info(28, "avx512f"), False),
        ("processor : 0\nFeatures : asimd\n", False),
    ],
)
def test_tiles_are_hidden_where_they_are_advertised_and_not_described(info, hidden):
    assert hides_tiles(info) is hidden


def test_what_the_user_chose_for_products_stays(monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert onednn_limit() == {"ONEDNN_MAX_CPU_ISA": "AVX2"}


def test_nothing_is_limited_where_tiles_work_or_are_not_there(monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    assert bool(onednn_limit()) is hides_tiles(Path("/proc/cpuinfo").read_text())


def test_the_processor_has_a_name_and_no_field_that_nobody_has():
    assert processor()
    assert field("no such field") == ""


def test_the_command_line_and_all_that_it_starts_keep_to_it():
    asked = "import os, sys; from kernelsmith.cli.main import main; main(['show', 'no such run'])"
    said = "; print(os.environ.get('ONEDNN_MAX_CPU_ISA', ''), 'torch' in sys.modules)"
    bare = {name: each for name, each in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"}
    done = subprocess.run(
        [sys.executable, "-c", asked + said], env=bare, capture_output=True, text=True, check=True
    )
    limit = "AVX512_CORE_FP16" if hides_tiles(Path("/proc/cpuinfo").read_text()) else ""
    assert done.stdout == f"{limit} False\n"


def test_products_of_halves_are_judged_on_whatever_this_machine_is(monkeypatch):
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    task = Task(name="halves", source=HALVES.format(name="Model"), library=Library.ANY)
    candidate = Candidate(backend="cpu", source=HALVES.format(name="ModelNew"))
    judge = LocalEvaluator("cpu", effort("glance", backend="cpu"))
    try:
        found = judge.judge(task, candidate)
    finally:
        judge.close()
    assert found.verdict is Verdict.PASSED, found.message
