"""Checkouts with broken files: one line that names the file, or one task that is absent."""

import pytest

from kernelsmith.bench.published.folder import published_in
from kernelsmith.bench.suite import Absent, open_suite
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.cli.main import main
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError

DEEP = "[" * 200_000
MODEL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()
def get_inputs():
    return [torch.rand(8)]
"""


def opened(spec):
    return {each.id: each for each in open_suite(spec).entries()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{", "is not JSON"),
        (DEEP, "is not JSON"),
        ("", "no task"),
        ("[1, 2]", "no list of objects"),
        ('[{"file": "Math/sum.py"}, {"difficulty": 1}]', "object 2 has no 'file'"),
        (b"\xff\xfe", "is not text"),
    ],
)
def test_a_broken_list_of_kernelbench_x_is_one_line(tmp_path, text, said, capsys):
    path = tmp_path / "data" / "kernelbenchx_v1.json"
    path.parent.mkdir()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["bench", "list", f"kernelbench-x:{tmp_path}", "--only", "sum"]) == 2
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "reading" not in each]
    assert said in line
    assert "kernelbenchx_v1.json" in line or said == "no task"


@pytest.mark.parametrize(
    ("suite", "name"),
    [("tritonbench-t", "TritonBench_T_v1.jsonl"), ("tritonbench-g", "TritonBench_G_v1.json")],
)
@pytest.mark.parametrize("text", ["[{", '[{"file": "sum.py"}]', '{"difficulty": 1}\n{'])
def test_a_broken_list_of_tritonbench_is_one_line(put, tmp_path, suite, name, text):
    put(f"data/{name.partition('.')[0]}/sum.py", "")
    put(f"data/{name}", text)
    with pytest.raises(UsageError, match=f"{name} is broken"):
        opened(f"{suite}:{tmp_path}")


def test_broken_parquet_is_one_line_wherever_it_is_read(put, tmp_path):
    pytest.importorskip("pyarrow")
    put("set.parquet", "PAR1 and nothing else")
    with pytest.raises(UsageError, match=r"set\.parquet cannot be read as parquet"):
        opened(f"table:{tmp_path / 'set.parquet'}")
    with pytest.raises(UsageError, match=r"set\.parquet cannot be read as parquet"):
        list(published_in(tmp_path))


def test_a_table_that_is_no_text_is_one_line(tmp_path):
    (tmp_path / "set.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text"):
        opened(f"table:{tmp_path / 'set.jsonl'}")


def test_a_row_that_nests_without_end_is_absent_alone(tmp_path):
    (tmp_path / "set.jsonl").write_text(f"{DEEP}\n")
    assert "line 1 is not JSON" in opened(f"table:{tmp_path / 'set.jsonl'}")["set/row1"].reason


def test_tables_to_audit_that_are_broken_are_named_and_hold_no_kernel(put, tmp_path):
    put("deep.json", DEEP)
    put("claims.json", '[{"code": "import triton", "speedup": Infinity}]')
    kernel, unread = published_in(tmp_path)
    assert str(unread).startswith("deep.json: is not JSON")
    assert kernel.claim is None  # nobody measured that


def test_broken_cases_make_a_task_absent(put, tmp_path):
    put("reference/npu/1_a.py", f"{MODEL}\ndef get_input_groups():\n    return []\n")
    put("reference/npu/1_a.json", "[1]\n")
    put("reference/npu/2_b.py", f"{MODEL}\ndef get_input_groups():\n    return []\n")
    put("reference/npu/2_b.json", "{\n")
    found = opened(f"multikernelbench:{tmp_path}")
    assert "1_a.json is broken" in found["multikernelbench/npu/1_a"].reason
    assert "2_b.json is broken" in found["multikernelbench/npu/2_b"].reason


def test_filters_that_cannot_be_read_are_said_of_the_task(put, tmp_path):
    put("tasks/scale/func_forward.py", MODEL)
    put("tasks/scale/config_forward.json", "{}")
    put("tasks/scale/filter_results.json", "{")
    assert "filter_results.json is broken" in (
        opened(f"robust-kbench:{tmp_path}")["robust-kbench/scale"].note
    )


def test_an_incomplete_definition_is_absent_alone(put, tmp_path):
    put("definitions/a.json", '{"name": "a", "reference": "def run(x):\\n    return x\\n"}')
    absent = opened(f"flashinfer:{tmp_path}")["flashinfer/a"]
    assert isinstance(absent, Absent)
    assert "is broken: KeyError('inputs')" in absent.reason


_NO_TEXT = b"# caf\xe9\n"


def spoil(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_NO_TEXT)


def test_a_task_of_kernelbench_x_that_is_no_text_is_absent_alone(put, tmp_path):
    put("data/kernelbenchx_v1.json", '[{"file": "Math/sum.py"}, {"file": "Math/max.py"}]')
    put("data/kernelbenchx/Math/sum.py", "def sum(x):\n    return x\n")
    spoil(tmp_path, "data/kernelbenchx/Math/max.py", "metrics/golden_metrics/sum_perf.py")
    found = opened(f"kernelbench-x:{tmp_path}")
    assert "max.py is not text" in found["kernelbench-x/Math/max"].reason
    assert "sum_perf.py is not text" in found["kernelbench-x/Math/sum"].reason


def test_helpers_of_kernelbench_x_that_are_no_text_are_one_line(put, tmp_path, capsys):
    put("data/kernelbenchx_v1.json", "[]")
    spoil(tmp_path, "utils/data_utils.py")
    assert main(["bench", "list", f"kernelbench-x:{tmp_path}"]) == 2
    assert "data_utils.py is not text" in capsys.readouterr().err


def test_a_task_of_tritonbench_that_cannot_be_read_is_absent_alone(put, tmp_path):
    (tmp_path / "data/TritonBench_T_v1/folder.py").mkdir(parents=True)
    put("data/TritonBench_T_v1/sum.py", "")
    spoil(
        tmp_path,
        "data/TritonBench_T_v1/max.py",
        "performance_metrics/perf_T/golden_metrics/sum_perf.py",
    )
    found = opened(f"tritonbench-t:{tmp_path}")
    assert "is a folder" in found["tritonbench-t/folder"].reason
    assert "max.py is not text" in found["tritonbench-t/max"].reason
    assert "sum_perf.py is not text" in found["tritonbench-t/sum"].reason


def test_files_of_flashinfer_that_are_no_text_are_named_one_by_one(put, tmp_path):
    put("definitions/a.json", '{"name": "a"}')
    put("definitions/c.json", DEEP)
    put("workloads/c.jsonl", '{"workload": 1, "definition": "a"}\n')
    spoil(tmp_path, "definitions/b.json", "workloads/a.jsonl")
    found = opened(f"flashinfer:{tmp_path}")
    assert "b.json is not text" in found["flashinfer/b"].reason
    assert "a.jsonl is not text" in found["flashinfer/workloads/a.jsonl"].reason
    assert {"flashinfer/a", "flashinfer/c"} < found.keys()


@pytest.mark.parametrize("text", [DEEP, "[]", '{"single_input_configs": []}'])
def test_settings_of_robust_kbench_that_are_none_make_a_task_absent(put, tmp_path, text):
    put("tasks/scale/func_forward.py", MODEL)
    put("tasks/scale/config_forward.json", text)
    absent = opened(f"robust-kbench:{tmp_path}")["robust-kbench/scale"]
    assert "config_forward.json is broken" in absent.reason


def test_a_folder_in_the_place_of_a_file_of_robust_kbench_is_said_of_the_task(put, tmp_path):
    put("tasks/one/func_forward.py", MODEL)
    (tmp_path / "tasks/one/config_forward.json").mkdir()
    put("tasks/two/func_forward.py", MODEL)
    put("tasks/two/config_forward.json", "{}")
    (tmp_path / "tasks/two/filter_results.json").mkdir()
    found = opened(f"robust-kbench:{tmp_path}")
    assert "is a folder" in found["robust-kbench/one"].reason
    assert "filter_results.json is broken" in found["robust-kbench/two"].note


@pytest.mark.parametrize("torn", [b'{"tests": [', b"\xff\xfe", b""])
def test_a_torn_survey_is_asked_for_again(tmp_path, torn):
    class Asked(Surveyor):
        def ask(self, task):
            return '{"tests": [], "timings": [], "tests_why": "none", "timings_why": ""}'

    surveyor, task = Asked(cache=tmp_path), Task(name="a", source=MODEL)
    assert surveyor.calls(task).why == "none"
    (kept,) = (tmp_path / "surveys").iterdir()
    kept.write_bytes(torn)
    assert surveyor.calls(task).why == "none"
    assert kept.read_bytes().endswith(b"}")  # and kept whole


@pytest.mark.parametrize(
    ("name", "why", "where"),
    [
        ("cudabench", "there is no reference", "https://github.com/CUDA-Bench/CUDABench"),
        ("TritonGym", "no public source", "https://tritongym.picasso-lab.com/"),
    ],
)
@pytest.mark.parametrize("place", ["", ":somewhere"])
def test_a_suite_that_is_known_and_not_read_says_why_and_what_can_be(
    name, why, where, place, capsys
):
    assert main(["bench", "list", f"{name}{place}"]) == 2
    said = capsys.readouterr().err
    assert f"suite {name!r} is not read" in said
    assert why in said
    assert where in said
    assert "folder:PATH" in said
