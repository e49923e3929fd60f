"""Tasks that bring a verified CUDA kernel along."""

import shutil
from pathlib import Path

import pytest

from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.errors import UsageError

ROOT = Path(__file__).parents[3]


def test_the_45_come_with_kernel_family_and_level():
    found = list(open_suite("cuda").entries())
    assert len(found) == 45
    assert all(isinstance(each, Entry) for each in found)
    first = found[0]
    assert first.id == "cuda/avg_pool2d"
    assert (first.family, first.level) == ("reduction", "difficulty 2")
    assert "__global__" in first.task.source


def test_a_folder_of_ones_own_is_read_and_a_task_without_a_kernel_is_absent(tmp_path):
    shutil.copy(ROOT / "tasks" / "cuda" / "celu.py", tmp_path)
    shutil.copy(ROOT / "tasks" / "softmax.py", tmp_path)
    own, other = open_suite(f"cuda-folder:{tmp_path}").entries()
    assert isinstance(own, Entry)
    assert own.id == "cuda-folder/celu"
    assert isinstance(other, Absent)
    assert "a constant CUDA" in other.reason


def test_an_empty_folder_is_said_to_be_one(tmp_path):
    with pytest.raises(UsageError, match="there is no task file in"):
        open_suite(f"cuda-folder:{tmp_path}")
