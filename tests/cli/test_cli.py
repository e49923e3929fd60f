"""The command line as a person meets it: answers, exit codes, one clear line when it fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TASK = ROOT / "tasks" / "rms_norm.py"
EXAMPLE = ROOT / "examples" / "rms_norm_cpu.py"


def run(*arguments, env=None):
    return subprocess.run(
        [sys.executable, "-m", "kernelsmith.cli.main", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, env=env, check=False,
    )  # fmt: skip


def expect_one_line(done, code, words):
    assert done.returncode == code, done.stderr
    said = done.stderr.strip().splitlines()
    assert "Traceback" not in done.stderr
    assert words in said[-1]
    assert said[-1].startswith("kernelsmith: ")


def test_help_lists_every_backend():
    said = " ".join(run("evaluate", "--help").stdout.split())
    assert "cpu, cuda, maca, maca-emulated, null, triton (default: cpu" in said


def test_the_package_can_be_run_as_a_module_with_the_same_exit_codes(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "kernelsmith", "evaluate", tmp_path / "none.py", EXAMPLE],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    expect_one_line(done, 2, "no task file")


def test_help_names_the_verbs_and_the_exit_codes():
    said = run("--help").stdout
    for word in ("evaluate", "compare", "doctor", "exit status"):
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", "nowhere.py", EXAMPLE], "no task file 'nowhere.py'"),
        (["evaluate", TASK, "nowhere.py"], "no candidate file 'nowhere.py'"),
        (["evaluate", EXAMPLE, EXAMPLE], "is not a KernelBench file"),
        (["evaluate", TASK, EXAMPLE, "--backend", "abacus"], "no backend 'abacus'"),
        (["evaluate", TASK, EXAMPLE, "--timeout", "-1"], "--timeout is a number"),
        (["compare", TASK, EXAMPLE, "nowhere.py"], "no candidate file"),
    ],
)
def test_a_bad_request_is_one_line_and_exit_code_two(arguments, words):
    expect_one_line(run(*arguments), 2, words)


def test_a_reference_that_fails_is_a_bad_request(tmp_path):
    task = tmp_path / "task.py"
    task.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x.nothing\ndef get_inputs():\n    return [torch.rand(3)]\n"
    )
    expect_one_line(run("evaluate", task, EXAMPLE), 2, "fails: AttributeError")


def test_a_missing_compiler_is_said_with_what_to_install(tmp_path):
    environment = {"PATH": "/nonexistent", "HOME": str(tmp_path), "CXX": "no-such-compiler"}
    done = run("evaluate", TASK, EXAMPLE, env=environment)
    expect_one_line(done, 2, "no C++ compiler no-such-compiler")


def test_json_goes_to_stdout_alone_and_can_be_read_back():
    from kernelsmith.domain.codec import loads

    done = run("evaluate", TASK, EXAMPLE, "--json", "--effort", "quick")
    assert done.returncode == 0, done.stderr
    found = loads(done.stdout)
    assert found.verdict == "passed"
    assert len(done.stdout.strip().splitlines()) == 1


def test_the_card_shows_ratio_interval_device_and_sandbox():
    said = run("evaluate", TASK, EXAMPLE, "--effort", "quick").stdout
    for word in ("PASSED", "95 % interval", "own code", "device", "sandbox", "samples"):
        assert word in said


def test_a_kernel_that_fails_is_exit_code_one(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(EXAMPLE.read_text().replace("* scale * weight", "* scale + weight"))
    done = run("evaluate", TASK, broken)
    assert done.returncode == 1
    assert "WRONG" in done.stdout


def test_compare_measures_one_candidate_beside_the_other():
    done = run("compare", TASK, EXAMPLE, EXAMPLE, "--json", "--effort", "quick")
    assert done.returncode == 0, done.stderr
    timing = json.loads(done.stdout)["timing"]
    assert timing["baseline"].startswith("candidate ")


def test_compare_says_which_one_failed(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(EXAMPLE.read_text().replace("* scale * weight", "* scale + weight"))
    done = run("compare", TASK, broken, EXAMPLE)
    assert done.returncode == 1
    assert "broken.py" in done.stdout


def test_doctor_names_backends_compilers_and_the_sandbox():
    done = run("doctor", "--fast", env={**os.environ, "KERNELSMITH_TRITON": "interpreter"})
    assert done.returncode == 0, done.stderr
    for word in ("backends", "cpu", "null", "g++", "sandbox", "coverage", "built for"):
        assert word in done.stdout
    assert "untested: never ran on its hardware\n  maca on MetaX GPUs: " in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if " triton: " in line]
    assert "checks only, nothing is timed" in line or "pip install 'kernelsmith[triton]'" in line
