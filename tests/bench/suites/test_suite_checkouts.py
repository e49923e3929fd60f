"""Real checkouts, where somebody has them: every task loads, or is listed with its reason.

``KERNELSMITH_SUITES="kernelbench:PATH kernelbench-x:PATH ..."`` says where they are. None comes
with this repository. Nothing is run but what a suite's own scripts need to say their calls.
"""

import importlib.util
import os

import pytest

from kernelsmith.bench.suite import Absent, open_suite

SUITES = {each.partition(":")[0]: each for each in os.environ.get("KERNELSMITH_SUITES", "").split()}


def read(name):
    if name not in SUITES:
        pytest.skip(f"KERNELSMITH_SUITES names no {name}:PATH")
    found = list(open_suite(SUITES[name]).entries())
    ids = [each.id for each in found]
    assert len(set(ids)) == len(ids)
    absent = {each.id: each.reason for each in found if isinstance(each, Absent)}
    return set(ids) - set(absent), absent


def test_all_250_tasks_of_kernelbench_load_but_those_that_are_listed():
    loaded, absent = read("kernelbench")
    levels = [f"kernelbench/level{level}/" for level in (1, 2, 3)]
    every = {f"{levels[0]}{n}" for n in range(1, 101)} | {f"{levels[1]}{n}" for n in range(1, 101)}
    every |= {f"{levels[2]}{n}" for n in range(1, 51)}
    gone = set()
    if importlib.util.find_spec("einops") is None:
        gone = {f"{levels[2]}48", f"{levels[2]}49"}
    assert every - loaded == gone
    assert every & set(absent) == gone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "listed", "least"),
    [
        ("kernelbench-x", 176, 165),
        ("tritonbench-t", 166, 150),
        ("tritonbench-g", 184, 150),
        ("multikernelbench", 401, 350),
    ],
)
def test_every_task_of_a_foreign_suite_loads_or_says_why_not(name, listed, least):
    loaded, absent = read(name)
    published = {id for id, reason in absent.items() if "not published" not in reason}
    assert len(loaded | published) == listed
    assert len(loaded) >= least
    assert all(reason and "\n" not in reason for reason in absent.values())
