"""compute-sanitizer by its command line and its exit status, with a stand-in that has no device."""

import os
from pathlib import Path

import pytest

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.nvcc.sanitizer import FOUND, TOOLS, examined, find_sanitizer
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels.toolkit import Toolkit

TASK = Task(name="t", source="def get_inputs(): return []\n")
SAYS = "echo '========= Invalid __global__ write of size 4 bytes'"


@pytest.fixture(scope="module")
def zygote():
    with Zygote(preload=["kernelsmith.evaluate.worker.compiling"]) as made:
        yield made


@pytest.fixture
def stand_in(tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # the sandbox is another user

    def made(script: str) -> Path:
        tool = tmp_path / "compute-sanitizer"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return tool

    return made


def test_every_tool_runs_once_and_says_that_there_is_nothing(zygote, stand_in):
    found = examined(zygote, stand_in("exit 0"), TASK, "class ModelNew: pass")
    assert found == [(name, "no errors", True) for name in TOOLS]


def test_a_finding_is_told_in_the_tools_words(zygote, stand_in):
    tool = stand_in(f'[ "$2" = memcheck ] || exit 0\n{SAYS}\nexit {FOUND}')
    first, *others = examined(zygote, tool, TASK, "class ModelNew: pass")
    assert first == ("memcheck", "Invalid __global__ write of size 4 bytes", False)
    assert all(clean for _, _, clean in others)


def test_a_tool_that_cannot_run_finds_nothing(zygote, stand_in):
    found = examined(zygote, stand_in("echo no device; exit 1"), TASK, "class ModelNew: pass")
    assert found[0] == ("memcheck", "did not run: no device", True)


def test_it_gets_the_candidate_and_the_inputs(zygote, stand_in):
    tool = stand_in(f"cat candidate.py about.json; exit {FOUND}")
    said = examined(zygote, tool, TASK, "class ModelNew: pass")[0][1]
    assert said == 'class ModelNew: pass{"inputs": {}, "init": {}}'


def test_it_is_found_beside_nvcc(monkeypatch, stand_in):
    monkeypatch.setenv("PATH", "/nowhere")
    tool = stand_in("exit 0")
    assert find_sanitizer(Toolkit(nvcc=tool.parent / "nvcc", nvrtc=None, includes=())) == tool
    assert find_sanitizer(Toolkit(nvcc=None, nvrtc=None, includes=())) is None
