"""FlashInfer-Bench's definitions and workloads, from files of the same schema."""

import json
import struct

import pytest
import torch

from kernelsmith.bench.suite import Absent, open_suite

REFERENCE = "import torch\n\ndef run(x, rows, eps):\n    return x[rows.long()] * eps\n"


def a_definition(**changes) -> str:
    usual = {
        "name": "rows_h8",
        "op_type": "gather",
        "tags": ["model:llama", "status:verified"],
        "axes": {"n": {"type": "var"}, "h": {"type": "const", "value": 8}, "k": {"type": "var"}},
        "inputs": {
            "x": {"shape": ["n", "h"], "dtype": "bfloat16"},
            "rows": {"shape": ["k"], "dtype": "int32"},
            "eps": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["k", "h"], "dtype": "bfloat16"}},
        "reference": REFERENCE,
    }
    return json.dumps(usual | changes)


def a_workload(name="rows_h8", *, n=16, k=3, rows="safetensors", path="blob/rows.safetensors"):
    stored = {"type": "safetensors", "path": path, "tensor_key": "rows"}
    return json.dumps(
        {
            "definition": name,
            "solution": None,
            "workload": {
                "uuid": f"{n}-{k}",
                "axes": {"n": n, "k": k},
                "inputs": {
                    "x": {"type": "random"},
                    "rows": stored if rows == "safetensors" else {"type": "random"},
                    "eps": {"type": "scalar", "value": 1e-6},
                },
            },
            "evaluation": None,
        }
    )


def stored(path, values) -> None:
    raw = struct.pack(f"<{len(values)}i", *values)
    header = {"rows": {"dtype": "I32", "shape": [len(values)], "data_offsets": [0, len(raw)]}}
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw)


def opened(root) -> dict:
    return {each.id: each for each in open_suite(f"flashinfer:{root}").entries()}


def test_index_tensors_of_a_trace_become_part_of_the_text(put, tmp_path):
    put("definitions/gather/rows_h8.json", a_definition())
    put("workloads/gather/rows_h8.jsonl", a_workload() + "\n{broken\n")
    stored(tmp_path / "blob/rows.safetensors", [5, 0, 15])
    entry = opened(tmp_path)["flashinfer/rows_h8"]
    assert (entry.task.entry, entry.dtype, entry.category) == ("run", "bfloat16", "gather")
    assert "llama" in entry.note
    scope: dict = {}
    exec(entry.task.source, scope)
    inputs = scope["get_inputs"](case=0)
    assert inputs["rows"].tolist() == [5, 0, 15]
    assert (inputs["x"].shape, inputs["x"].dtype) == ((16, 8), torch.bfloat16)
    assert inputs["eps"] == 1e-6
    assert scope["run"](**inputs).shape == (3, 8)


def test_small_middle_and_large_workloads_are_timed_and_some_others_checked(put, tmp_path):
    plain = {"x": {"shape": ["n", "h"], "dtype": "float32"}}
    put("definitions/a.json", a_definition(inputs=plain, axes={
        "n": {"type": "var"}, "h": {"type": "const", "value": 1024}}))  # fmt: skip
    put("workloads/a.jsonl", "\n".join(a_workload(n=n) for n in (1, 2, 3, 4, 5, 9000, 8, 8)))
    task = opened(tmp_path)["flashinfer/rows_h8"].task
    timed = [each.name for each in task.workloads if not each.held_out]
    assert timed == ["1: n=1, k=3", "2: n=4, k=3", "gpu: 3: n=9000, k=3"]
    assert sum(each.held_out for each in task.workloads) == 4


@pytest.mark.parametrize(
    ("changes", "workload", "reason"),
    [
        ({}, None, "no workloads in this checkout"),
        ({}, a_workload(), "safetensors files are missing: git lfs pull"),
        ({}, a_workload(rows="random"), "rows holds indices or lengths"),
        ({"reference": "x = 1"}, a_workload(), "no reference with a function run"),
        ({"inputs": {"x": {"shape": ["n"], "dtype": "float8_e4m3fn"}}}, a_workload(),
         "x is float8_e4m3fn, which the judge cannot carry"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_absent_with_its_reason(put, tmp_path, changes, workload, reason):
    put("definitions/a.json", a_definition(**changes))
    if workload:
        put("workloads/a.jsonl", workload)
    entry = opened(tmp_path)["flashinfer/rows_h8"]
    assert isinstance(entry, Absent)
    assert reason in entry.reason


def test_a_tensor_of_another_shape_than_the_workload_says_is_not_believed(put, tmp_path):
    put("definitions/a.json", a_definition())
    put("workloads/a.jsonl", a_workload(k=4))
    stored(tmp_path / "blob/rows.safetensors", [5, 0, 15])
    assert "not int32 [4]" in opened(tmp_path)["flashinfer/rows_h8"].reason


def test_workloads_without_a_definition_and_broken_definitions_are_named(put, tmp_path):
    put("definitions/a.json", a_definition())
    put("definitions/b.json", "{broken")
    put("traces/c.jsonl", a_workload("elsewhere"))
    found = opened(tmp_path)
    assert "no definition" in found["flashinfer/elsewhere"].reason
    assert isinstance(found["flashinfer/b"], Absent)


def test_broken_lines_of_workloads_are_named_and_the_others_are_read(put, tmp_path):
    put("definitions/gather/rows_h8.json", a_definition())
    stored(tmp_path / "blob/rows.safetensors", [1, 0, 2])
    lines = [a_workload(), a_workload()[:40], "", '{"definition": "rows_h8"}']
    put("workloads/gather/rows_h8.jsonl", "\n".join(lines) + "\n")
    put("workloads/gather/far.jsonl", "version https://git-lfs.github.com/spec/v1\noid x\nsize 9\n")
    found = opened(tmp_path)
    assert not isinstance(found["flashinfer/rows_h8"], Absent)
    said = found["flashinfer/workloads/gather/rows_h8.jsonl"].reason
    assert said == "lines 2, 4 are no workloads"
    assert "git lfs pull" in found["flashinfer/workloads/gather/far.jsonl"].reason
