"""KernelBench's own data set: rows of a table that are the same tasks as a checkout's files."""

import json

import pytest

from kernelsmith.bench.audit import Auditor
from kernelsmith.bench.job import task_hash
from kernelsmith.bench.published.kernel import Published
from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.cli.main import main

FILE = """
import torch
{more}
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()
def get_inputs():
    return [torch.rand(8)]
"""
STEMS = (
    "level1/1_Square_matrix_multiplication_", "level1/10_3D_tensor_matrix_multiplication",
    "level1/13_Matmul_for_symmetric_matrices", "level1/23_Softmax", "level1/98_KLDivLoss",
    "level2/23_Conv3d_GroupNorm_Mean", "level2/45_Gemm_Sigmoid_LogSumExp", "level3/11_VGG16",
    "level3/48_Mamba2ReturnY", "level3/49_Mamba2ReturnFinalState", "level4/7_gpt2_bs32_seq256",
)  # fmt: skip
"""Names of real problems; what they compute does not matter here."""
MORE = {
    "level3/48_Mamba2ReturnY": "import no_such_package_at_all",
    "level3/49_Mamba2ReturnFinalState": "def broken(:",
    "level4/7_gpt2_bs32_seq256": "# AutoModel.from_pretrained('gpt2')",
}


def a_row(stem, **changes):
    """A row as KernelBench's own script makes it from a file."""
    level, _, name = stem.partition("/")
    usual = {"code": FILE.format(more=MORE.get(stem, "")), "level": int(level[-1]), "name": name,
             "problem_id": int(name.partition("_")[0])}  # fmt: skip
    return {**usual, **changes}


@pytest.fixture
def table(tmp_path):
    """Open rows, or texts of lines, as a suite."""

    def open_table(*rows, name="train"):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        return open_suite(f"table:{tmp_path / f'{name}.jsonl'}")

    return open_table


def by_id(suite):
    return {each.id: each for each in suite.entries()}


@pytest.mark.parametrize("form", ["{}", "level_{}"])
def test_rows_of_kernelbench_are_the_entries_of_a_checkout(put, tmp_path, table, form):
    for stem in STEMS:
        put(f"checkout/KernelBench/{stem}.py", FILE.format(more=MORE.get(stem, "")))
    checkout = open_suite(f"kernelbench:{tmp_path / 'checkout'}")
    files = list(checkout.entries())
    rows = [a_row(stem, level=form.format(stem[5])) for stem in sorted(STEMS)]
    suite = table(*rows)
    found = list(suite.entries())
    assert suite.name == checkout.name == "kernelbench"
    assert found == files
    notes = {each.id: each.note for each in found if isinstance(each, Entry) and each.note}
    assert notes["kernelbench/level1/23"].startswith("degenerate:")
    assert notes["kernelbench/level2/45"].startswith("suspect:")
    pairs = [(a.task, b.task) for a, b in zip(files, found, strict=True) if isinstance(a, Entry)]
    assert all(task_hash(a) == task_hash(b) for a, b in pairs)


def test_a_row_that_is_no_python_is_absent_without_naming_a_folder(table):
    absent = by_id(table(a_row("level3/49_Mamba2ReturnFinalState")))["kernelbench/level3/49"]
    assert isinstance(absent, Absent)
    assert absent.level == "level 3"
    assert "/" not in absent.reason


def test_levels_that_a_table_has_not_are_said_once(table):
    entries = list(table(a_row("level2/23_Conv3d_GroupNorm_Mean")).entries())
    assert [each.id for each in entries] == [
        "kernelbench/level1", "kernelbench/level2/23", "kernelbench/level3", "kernelbench/level4",
    ]  # fmt: skip
    assert entries[0].reason == "not in this table"


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "23_LogSoftmax"},
        {"problem_id": 22},
        {"level": 2},
        {"level": 5},
        {"level": None},
        {"name": None},
    ],
)
def test_a_row_that_only_looks_like_one_of_kernelbench_is_a_tables_own(table, changes):
    suite = table(a_row("level1/23_Softmax", **changes))
    (entry,) = suite.entries()
    assert entry.id.startswith("train/")
    assert suite.name == "train"
    assert not entry.note


def test_among_other_rows_those_of_kernelbench_are_still_known(table):
    rows = (a_row("level1/23_Softmax"), a_row("level1/23_Softmax", name="mine"), "{broken")
    suite = table(*rows, name="kernelbench")
    found = by_id(suite)
    assert list(found) == ["kernelbench/level1/23", "kernelbench/1/23", "kernelbench/row3"]
    assert found["kernelbench/level1/23"].is_degenerate


def test_a_line_that_cannot_be_read_does_not_hide_what_the_others_are(table):
    suite = table(a_row("level1/23_Softmax"), "{broken")
    assert suite.name == "kernelbench"
    assert by_id(suite)["kernelbench/row2"].reason.startswith("line 2 is not JSON")


def test_what_a_problem_was_called_before_is_known(table):
    found = by_id(table(a_row("level2/45_Gemm_Sigmoid_Sum_LogSumExp"), a_row("level3/35_LTSM")))
    assert found["kernelbench/level2/45"].is_suspect
    assert found["kernelbench/level3/35"].family == "model"


def test_two_rows_of_one_problem_are_told_apart(table):
    row = a_row("level1/23_Softmax")
    found = by_id(table(row, {**row, "code": row["code"] + "\n"}))
    assert list(found)[:2] == ["kernelbench/level1/23", "kernelbench/level1/23.2"]


def test_a_kernel_published_by_level_and_number_finds_its_row(table):
    auditor = Auditor("quick", table(a_row("level1/98_KLDivLoss")))
    kernel = Published(id="k", source="", language="pytorch", level=1, number=98)
    assert auditor._published_task(kernel).structure == ("probabilities",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"code": "\ud800"}, "its code is not text"), ({"name": "n" * 300}, "cannot be written")],
)
def test_a_row_that_cannot_be_a_file_is_absent_alone(table, changes, said):
    found = by_id(table(a_row("level1/23_Softmax"), a_row("level1/23_Softmax", level=9, **changes)))
    assert said in found["train/9/23"].reason
    assert isinstance(found["kernelbench/level1/23"], Entry)


def test_a_table_of_kernelbench_is_listed_with_its_degenerate_problems(table, tmp_path, capsys):
    table(a_row("level1/23_Softmax"), a_row("level1/98_KLDivLoss"))
    words = ["bench", "list", f"table:{tmp_path / 'train.jsonl'}", "--json", "--level", "1"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["tasks"]
    assert [(each["id"], bool(each["note"])) for each in found] == [
        ("kernelbench/level1/23", True), ("kernelbench/level1/98", False),
    ]  # fmt: skip
