"""Folders and tables of KernelBench files."""

import importlib.util
import json

import pytest

from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.errors import UsageError

FILE = """
import torch
FAMILY = "scan"
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()
def get_inputs(n=8):
    return [torch.rand(n)]
"""
COMPUTED = (
    "def get_workloads():\n    return [{'name': str(n), 'inputs': {'n': n}} for n in (3, 4)]\n"
)


def by_id(spec: str) -> dict:
    return {each.id: each for each in open_suite(spec).entries()}


def test_a_folder_without_a_task_says_so(put, tmp_path):
    put("mine/_private.py", FILE)
    put("mine/notes.txt", "nothing")
    with pytest.raises(UsageError, match=r"mine' holds no task: there is no \.py in it"):
        open_suite(f"folder:{tmp_path / 'mine'}")


def test_a_folder_is_read_with_its_sub_folders_as_categories(put, tmp_path):
    put("mine/b.py", FILE)
    put("mine/deep/a.py", FILE.replace('FAMILY = "scan"', ""))
    put("mine/_private.py", FILE)
    put("mine/.hidden/x.py", FILE)
    put("mine/notes.py", "a = 1\n")
    found = by_id(f"folder:{tmp_path / 'mine'}")
    assert list(found) == ["mine/b", "mine/deep/a", "mine/notes"]
    assert found["mine/b"].family == "scan"
    assert found["mine/deep/a"].category == "deep"
    assert isinstance(found["mine/notes"], Absent)
    assert "defines no Model" in found["mine/notes"].reason


def test_computed_workloads_run_in_the_sandbox(put, tmp_path):
    put("mine/a.py", FILE + COMPUTED)
    task = by_id(f"folder:{tmp_path / 'mine'}")["mine/a"].task
    assert [each.name for each in task.workloads] == ["3", "4"]


def test_a_table_gives_a_task_a_row_and_the_rest_by_row(tmp_path):
    rows = [
        json.dumps({"code": FILE, "level": 1, "problem_id": 7, "name": "7_Softmax"}),
        "{broken",
        json.dumps({"name": "no code"}),
        json.dumps({"code": "def get_inputs(:"}),
        json.dumps({"code": FILE, "level": 1, "problem_id": 7, "name": "7_KLDivLoss"}),
        "",
        json.dumps([1]),
    ]
    path = tmp_path / "set.jsonl"
    path.write_text("\n".join(rows))
    found = by_id(f"table:{path}")
    assert list(found) == [
        "set/1/7",
        "set/row2",
        "set/no_code",
        "set/row4",
        "set/1/7.2",
        "set/row7",
    ]
    first = found["set/1/7"]
    assert isinstance(first, Entry)
    assert (first.task.name, first.level, first.family) == ("7_Softmax", "1", "attention")
    assert found["set/1/7.2"].task.structure == ("probabilities",)
    assert "line 2 is not JSON" in found["set/row2"].reason
    assert "no column 'code'" in found["set/no_code"].reason
    assert "not Python" in found["set/row4"].reason


def test_parquet_without_pyarrow_says_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "set.parquet"
    path.write_bytes(b"PAR1")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *_: None if name == "pyarrow" else real(name)
    )
    with pytest.raises(UsageError, match="pip install pyarrow, or save the table as jsonl"):
        open_suite(f"table:{path}")


def test_parquet_is_read_where_pyarrow_is_there(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "set.parquet"
    parquet.write_table(arrow.table({"code": [FILE], "name": ["relu"]}), path)
    assert list(by_id(f"table:{path}")) == ["set/relu"]


def test_a_table_of_another_kind_is_refused(tmp_path):
    (tmp_path / "set.csv").write_text("code\n")
    with pytest.raises(UsageError, match=r"neither \.parquet nor \.jsonl"):
        open_suite(f"table:{tmp_path / 'set.csv'}")
