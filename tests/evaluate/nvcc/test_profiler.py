"""ncu by its exact command line and its CSV, with a stand-in that has no device."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backends.null import NullBackend
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.nvcc.profiler import (
    METRICS,
    command,
    counters_permitted,
    find_ncu,
    profiled,
    read,
)
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.propose.prompt_feedback import measurements
from kernelsmith.testing import QUICK

TASK = Task(name="t", source="def get_inputs(): return []\n")
SOURCE = "class ModelNew: pass"
HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","dram__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"gpu__time_duration.sum","launch__registers_per_thread","lts__t_sector_hit_rate.pct",'
    '"sm__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"sm__warps_active.avg.pct_of_peak_sustained_active"'
)
UNITS = '"","","","","","","","","","","","%","ns","register/thread","%","%","%"'


def a_row(number, name, *values):
    start = f'"{number}","4711","python3.11","127.0.0.1","{name}","1","7","(256, 1, 1)"'
    shown = ",".join(f'"{value}"' for value in values)
    return f'{start},"(132, 1, 1)","0","9.0",{shown}'


REPORT = "\n".join(
    [
        "==PROF== Connected to process 4711 (/usr/bin/python3.11)",
        '==PROF== Profiling "softmax_rows(const float *, float *, int)" - 0: 0%....100% - 6 passes',
        "==PROF== Disconnected from process 4711",
        HEAD,
        UNITS,
        a_row(0, "softmax_rows(const float *, float *, int)", "80.00", "30,000", "32", "10.0",
              "20.0", "60.0"),
        a_row(1, "fill(float *, int)", "n/a", "2000", "16", "nan", "5.0", "90.0"),
        a_row(2, "softmax_rows(const float *, float *, int)", "90.00", "10,000", "32", "30.0",
              "40.0", "80.0"),
    ]
)  # fmt: skip
WORDS = "DRAM 82 % of peak, SM 25 % of peak, occupancy 65 %, 32 registers, L2 hits 15 %"


@pytest.fixture(scope="module")
def zygote():
    with Zygote(preload=["kernelsmith.evaluate.worker.compiling"]) as made:
        yield made


@pytest.fixture
def stand_in(tmp_path):
    home = tmp_path / "nsight" / "bin"
    home.mkdir(parents=True)
    for folder in (home, *home.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # the sandbox is another user

    def made(script: str) -> Path:
        tool = home / "ncu"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return tool

    return made


def test_launches_of_a_kernel_are_taken_together_by_their_times():
    longest, other = read(REPORT)
    assert longest.kernel == "softmax_rows(const float *, float *, int)"
    assert longest.nanoseconds == 40000
    assert str(longest) == WORDS
    assert other.kernel == "fill(float *, int)"


def test_what_could_not_be_read_is_left_out():
    assert str(read(REPORT)[1]) == "SM 5 % of peak, occupancy 90 %, 16 registers"


@pytest.mark.parametrize(
    "report",
    [
        "",
        "==PROF== Connected to process 4711\n==PROF== Disconnected from process 4711\n",
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
        "Performance Counters on the target device 0.\n",
        f"{HEAD}\n{UNITS}\n",
        f"{HEAD}\n{UNITS}\n{a_row(0, 'k', 'n/a', 'n/a')}\n",
        '"ID"\n"0"\n"1"\n',
        '"Kernel Name","gpu__time_duration.sum"\n"","ns"\n"k"',
    ],
)
def test_a_report_without_kernels_says_nothing(report):
    assert read(report) == []


def test_the_command_line_is_exactly_this():
    assert command(Path("/opt/bin/ncu")) == [
        "/opt/bin/ncu", "--csv", "--page", "raw", "--print-units", "base", "--log-file",
        "metrics.csv", "--force-overwrite", "--launch-count", "32", "--metrics",
        "gpu__time_duration.sum,"
        "dram__throughput.avg.pct_of_peak_sustained_elapsed,"
        "sm__throughput.avg.pct_of_peak_sustained_elapsed,"
        "sm__warps_active.avg.pct_of_peak_sustained_active,"
        "launch__registers_per_thread,lts__t_sector_hit_rate.pct",
    ]  # fmt: skip
    assert len(METRICS) == 5


def test_it_is_what_runs_with_the_candidate_behind_it(zygote, stand_in):
    row = 'printf \'"%s","1"\\n\' "$(echo "$@" | tr -d \'"\\n\')"'
    head = '"Kernel Name","gpu__time_duration.sum"'
    tool = stand_in(f"(echo '{head}'; echo '\"\",\"ns\"'; {row}) > metrics.csv; cat candidate.py")
    (found,) = profiled(zygote, tool, TASK, SOURCE)
    said = found.kernel.split(" ")
    expected = command(tool)[1:]
    assert said[: len(expected)] == expected
    assert re.search(r"/python[\d.]* -c import sys; .*worker\.cuda\.alone import main; main\(\)",
                     found.kernel)  # fmt: skip


def test_its_report_is_read_from_the_file_that_it_was_told_to_write(zygote, stand_in):
    tool = stand_in(f"cat > metrics.csv <<'END'\n{REPORT}\nEND")
    assert [str(each) for each in profiled(zygote, tool, TASK, SOURCE)] == [
        WORDS, "SM 5 % of peak, occupancy 90 %, 16 registers"
    ]  # fmt: skip


def test_what_a_candidate_prints_is_no_report(zygote, stand_in):
    assert profiled(zygote, stand_in(f"cat <<'END'\n{REPORT}\nEND"), TASK, SOURCE) == []


@pytest.mark.parametrize("script", ["echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1", "kill -9 $$"])
def test_where_it_may_not_look_nothing_is_said(zygote, stand_in, script):
    assert profiled(zygote, stand_in(script), TASK, SOURCE) is None


def test_a_candidate_that_torch_would_build_is_left_out(zygote, stand_in):
    tool = stand_in(f"cat > metrics.csv <<'END'\n{REPORT}\nEND")
    assert profiled(zygote, tool, TASK, "load_inline(...)") == []


def test_it_is_looked_for_on_the_path_and_only_where_counters_are_open(
    monkeypatch, stand_in, tmp_path
):
    tool = stand_in("exit 0")
    monkeypatch.setenv("PATH", str(tool.parent))
    parameters = tmp_path / "params"
    assert find_ncu(parameters) == tool, "it says nothing, so one has to try"
    parameters.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    assert not counters_permitted(parameters)
    assert find_ncu(parameters) is None
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    assert counters_permitted(parameters)
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_ncu(parameters) is None


class Counting(NullBackend):
    """The simulated device, with counters."""

    asked = 0

    def profiled(self, task, candidate):
        self.asked += 1
        return read(REPORT)


@pytest.mark.parametrize("champion", [True, False])
def test_a_champions_evaluation_carries_them_into_the_next_prompt(champion):
    task = Task(name="add", source="x + y", entry="expression")
    backend = Counting()
    judge = Judge(backend, task, replace(QUICK, sanitize=champion))
    found = judge.judge(Candidate(backend="null", source="x + y"))
    judge.close()
    assert backend.asked == int(champion)
    assert (f"- counters: softmax_rows(const float *, float *, int): {WORDS}" in
            measurements(found, task)) is champion  # fmt: skip
    assert found.verdict is Verdict.PASSED
