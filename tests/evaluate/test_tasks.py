"""Task files: KernelBench's form with a few optional extras, and clear words for the rest."""

from pathlib import Path

import pytest

from kernelsmith.domain.task import Library, Task, Weights, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import fitting, load_candidate, load_task

MODEL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.rand(4)]
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="task.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_plain_kernelbench_file_has_one_workload(written):
    task = load_task(written(MODEL))
    assert task.name == "task"
    assert [workload.name for workload in task.workloads] == ["default"]
    assert task.candidate_entry == "ModelNew"


def test_extras_are_read_without_running_the_file(written):
    text = MODEL + (
        "raise SystemExit('the file was run')\n"
        "TOLERANCE = {'atol': 1e-3, 'rtol': 1e-4}\nWEIGHTS = 'static'\nLIBRARY = 'none'\n"
        "COMPUTE_DTYPE = 'bfloat16'\nSTRUCTURE = 'sorted'\nTRAINING = True\n"
    )
    task = load_task(written(text))
    assert (task.tolerance.atol, task.tolerance.rtol) == (1e-3, 1e-4)
    assert (task.weights, task.library) == (Weights.STATIC, Library.NONE)
    assert task.compute_dtype == "bfloat16"
    assert task.structure == ("sorted",)
    assert task.training


def test_what_a_task_says_about_itself_is_not_the_judges_business(written):
    said = "FAMILY = 'scan'\nDIFFICULTY = 3\nORIGIN = 'Mamba-130m'\nSHAPE = 2 * (4,)\n"
    path = written(MODEL + said)
    assert load_task(path) == Task(name="task", source=MODEL + said)


def test_literal_workloads_are_read_without_running_the_file(written):
    text = MODEL + (
        "def get_workloads():\n"
        "    return [{'name': 'a', 'inputs': {'shape': [2, 3]}},\n"
        "            {'name': 'b', 'dtype': 'float16', 'held_out': True}]\n"
    )
    task = load_task(written(text))
    assert task.workloads[0].arguments == (("shape", (2, 3)),)
    assert task.workloads[1].held_out


def test_computed_workloads_are_asked_for_in_the_sandbox(written):
    text = MODEL + "def get_workloads():\n    return [{'name': str(n)} for n in range(2)]\n"
    asked = []

    def run(task):
        asked.append(task.name)
        return [{"{}": [["name", "0"]]}, {"{}": [["name", "1"]]}]

    task = load_task(written(text), run)
    assert asked == ["task"]
    assert [workload.name for workload in task.workloads] == ["0", "1"]


def test_a_function_can_be_the_task(written):
    text = "import torch\ndef scale(x):\n    return 2 * x\ndef get_inputs():\n    return []\n"
    task = load_task(written(text))
    assert task.is_function
    assert task.candidate_entry == "scale"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "defines no Model and no get_inputs"),
        ("class Model: ...\n", "defines no get_inputs"),
        ("def f(:\n", "is not Python: line 1"),
        (MODEL + "WEIGHTS = 'frozen'\n", "frozen"),
        (MODEL + "TOLERANCE = 'tight'\n", "TOLERANCE is a number"),
        (MODEL + "TOLERANCE = compute()\n", "must be a literal"),
        (MODEL + "def get_workloads():\n    return [{'nme': 'a'}]\n", "unknown key nme"),
        (MODEL + "def get_workloads():\n    return [{}]\n", "name"),
        (MODEL + "def get_workloads():\n    return []\n", "names of their own"),
    ],
)
def test_a_file_that_is_no_task_gets_one_clear_line(written, text, words):
    with pytest.raises(UsageError) as caught:
        load_task(written(text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_folder_binary_and_empty_files_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="no task file"):
        load_task(tmp_path / "nowhere.py")
    with pytest.raises(UsageError, match="is a folder"):
        load_task(tmp_path)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not text"):
        load_task(tmp_path / "binary.py")
    (tmp_path / "empty.py").write_text("\n")
    with pytest.raises(UsageError, match="is empty"):
        load_candidate(tmp_path / "empty.py", "cpu")


def test_workloads_for_other_hardware_are_left_out():
    workloads = (Workload(name="small"), Workload(name="gpu: large"), Workload(name="cpu: tiny"))
    task = Task(name="t", source="", workloads=workloads)
    assert [each.name for each in fitting(task, gpu=False).workloads] == ["small", "cpu: tiny"]
    assert [each.name for each in fitting(task, gpu=True).workloads] == ["small", "gpu: large"]


def test_a_task_for_other_hardware_alone_stays_as_it_is():
    task = Task(name="t", source="", workloads=(Workload(name="gpu: large"),))
    assert fitting(task, gpu=False) == task
