"""From planted modules to tables, read back by whoever reads such tables."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from kernelsmith.bench.suite import Entry, open_suite
from kernelsmith.corpus.classify import classify
from kernelsmith.corpus.cluster import cluster, export_centres, import_centres
from kernelsmith.corpus.compose import chained
from kernelsmith.corpus.deduplicate.deduplicate import deduplicate
from kernelsmith.corpus.handcheck import write_sample
from kernelsmith.corpus.inputs.model import Model, by_model, code_in
from kernelsmith.corpus.publish import publish
from kernelsmith.corpus.store import Record, Store
from kernelsmith.errors import UsageError

TASK = '''\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x):
        return {body}


class Model(Net):
    """{key}"""


def get_init_inputs():
    return [16]


def get_inputs(batch=4):
    return [torch.randn(batch, 16)]


def get_workloads():
    return [{{'name': 'default'}}, {{'name': 'batch=2', 'inputs': {{'batch': 2}}}}]
'''
BODIES = {
    "A": ("torch.relu(self.layer(x))", {"addmm": 1, "relu": 1, "add": 2}),
    "B": ("self.layer(x).softmax(-1).cumsum(0)", {"addmm": 1, "_softmax": 1, "cumsum": 1}),
    "C": ("torch.sigmoid(x) * self.layer(x.square()) - x", {"addmm": 1, "sigmoid": 1, "mul": 2}),
}


@pytest.fixture
def store(tmp_path):
    """A corpus whose modules ran, as the run stage leaves it."""
    made = Store(tmp_path / "corpus")
    harvested, extracted, ran = (made.stage(n) for n in ("harvest", "extract", "run"))
    harvested.add(Record(key="source:pkg", data={"kind": "source", "name": "pkg",
                                                 "version": "1.0", "origin": "pkg"}))  # fmt: skip
    for name, (body, ops) in BODIES.items():
        key = f"pkg:pkg/a.py:{name}"
        extracted.add(Record(key=key, data={"licence": "MIT", "root": "Net", "code": "",
                                            "hash": name}))  # fmt: skip
        ran.add(Record(key=key, data={
            "code": TASK.format(body=body, key=key), "ops": ops, "graph": name, "random": False,
            "exact": True, "stateful": False, "workloads": 2, "parameters": 272,
            "inputs": ["float32[4, 16]"], "outputs": ["float32[4, 16]"], "notes": [],
            "agreement": "yes" if name == "A" else ""}))  # fmt: skip
    for stage in (harvested, extracted, ran):
        stage.close()
    return made


@pytest.fixture
def published(store, tmp_path):
    deduplicate(store, against=(), say=lambda text: None)
    classify(store)
    cluster(store)
    assert publish(store, tmp_path / "out") == 3
    return tmp_path / "out"


def test_a_table_is_read_back_as_a_suite(published):
    pytest.importorskip("pyarrow")
    for name in ("corpus.jsonl", "corpus.parquet"):
        entries = list(open_suite(f"table:{published / name}").entries())
        assert all(isinstance(entry, Entry) for entry in entries)
        assert len(entries) == 3
        assert [w.name for w in entries[0].task.workloads] == ["default", "batch=2"]
        assert entries[0].category == "matmul"


def test_a_table_is_read_by_the_datasets_library(published, tmp_path):
    datasets = pytest.importorskip("datasets")
    found = datasets.load_dataset(
        "parquet", data_files=str(published / "corpus.parquet"), split="train",
        cache_dir=str(tmp_path / "cache"),
    )  # fmt: skip
    assert len(found) == 3
    assert "class Model" in found[0]["code"]
    assert found[0]["licence"] == "MIT"


def test_task_files_are_a_folder_that_optimize_takes_seeds_from(published):
    from kernelsmith.cli.suite import tasks_in
    from kernelsmith.evaluate.tasks import load_task

    found = tasks_in(published / "tasks")
    assert len(found) == 3
    assert load_task(found[0][1]).entry == "Model"
    (entry, *_) = open_suite(f"folder:{published / 'tasks'}").entries()
    assert entry.family == "matmul"


def test_the_card_has_counts_licences_and_says_what_nobody_checked(published, store):
    text = (published / "README.md").read_text()
    assert "3 self-contained PyTorch modules" in text
    assert "| MIT | 3 |" in text
    assert "Not yet: no sample" in text
    assert "agree in number, rank and type for 1 (100%)" in text
    (store.folder / "hand_check.json").write_text(json.dumps(
        {"looked_at": 50, "by": "a reader", "faithful": 48, "meaningful": 47}))  # fmt: skip
    publish(store, published)
    assert "48 faithful to the original" in (published / "README.md").read_text()


def test_publishing_again_leaves_no_file_of_before(published, store):
    stale = published / "tasks" / "matmul" / "99_Old.py"
    stale.write_text("x")
    publish(store, published)
    assert not stale.exists()
    assert len(list((published / "tasks").rglob("*.py"))) == 3


def test_nothing_to_publish_is_one_line(tmp_path):
    empty = Store(tmp_path)
    for name in ("extract", "harvest", "run", "classify"):
        empty.stage(name).path.touch()
    with pytest.raises(UsageError, match="nothing to publish"):
        publish(empty, tmp_path / "out")


def test_a_task_of_a_benchmark_is_dropped_and_said(store, tmp_path, runner):
    folder = tmp_path / "bench"
    folder.mkdir()
    body = BODIES["B"][0]
    (folder / "1_B.py").write_text(TASK.format(body=body, key="x").replace("Net", "Other"))
    deduplicate(store, against=[f"folder:{folder}"], say=lambda text: None, runner=runner)
    found = {r.key.rpartition(":")[2]: r for r in store.stage("deduplicate")}
    assert found["B"].reason == "in a benchmark"
    assert found["A"].kept


def test_edited_centres_come_back_checked_and_with_a_name(store, tmp_path, runner):
    stage = store.stage("cluster")
    for name in "AB":
        stage.add(Record(key=f"pkg:pkg/a.py:{name}", data={"cluster": ord(name), "centre": True}))
    stage.close()
    assert export_centres(store, tmp_path / "centres") == 2
    first, second = sorted((tmp_path / "centres").glob("*.py"))
    first.write_text(first.read_text().replace("torch.relu", "torch.tanh"))
    second.write_text(second.read_text().replace("def forward", "def forwards"))
    assert import_centres(store, tmp_path / "centres", by="an expert", runner=runner) == (1, 1)
    found = {r.key.rpartition(":")[2]: r for r in store.stage("run").kept()}
    assert "torch.tanh" in found["A"].text("code")
    assert found["A"].text("annotated_by") == "an expert"
    assert "cumsum" in found["B"].text("code")


def test_a_chain_is_one_file_in_which_all_names_differ(store, runner):
    records = list(store.stage("run").kept())
    text = chained(records[:2])
    found = runner.check("k", text)
    assert found.kept, (found.reason, found.detail)
    assert found.number("parameters") == 2 * 272
    assert "Synthetic: pkg:pkg/a.py:A then pkg:pkg/a.py:B" in text


def test_a_sample_lies_beside_its_originals(store, tmp_path, published):
    assert write_sample(store, tmp_path / "sample", count=2, seed=1) == 2
    assert len(list((tmp_path / "sample").glob("*/task.py"))) == 2
    with pytest.raises(UsageError, match="not empty"):
        write_sample(store, tmp_path / "sample", count=2)


def test_a_model_helps_where_no_guess_did_and_is_named(tmp_path, runner):
    store = Store(tmp_path)
    source = "import torch\nfrom torch import nn\n\nclass Odd(nn.Module):\n" \
             "    def forward(self, x):\n        assert x.shape == (3, 5, 7)\n" \
             "        return torch.tanh(x) * 2\n"  # fmt: skip
    for name, record in (
        ("extract", Record(key="a:b.py:Odd", data={"code": source, "root": "Odd"})),
        ("run", Record(key="a:b.py:Odd", reason="no inputs found", detail="AssertionError: ")),
    ):
        store.stage(name).add(record)
    reply = (
        "Here:\n```python\nclass Model(Odd):\n    pass\n\ndef get_init_inputs():\n"
        "    return []\n\ndef get_inputs():\n    return [torch.randn(3, 5, 7)]\n```"
    )
    with endpoint(reply) as url:
        assert by_model(store, Model(name="m", url=url), most=5, runner=runner) == (1, 1)
    (record,) = store.stage("run").kept()
    assert record.data["model_written"] is True
    assert record.text("model") == "m"


def test_a_reply_without_code_is_no_code():
    assert code_in("I cannot") == ""


class endpoint:
    """A real HTTP server that answers every chat with one reply."""

    def __init__(self, reply):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                said = {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": "stop",
                            "message": {"role": "assistant", "content": reply},
                        }
                    ],
                }
                body = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def __exit__(self, *what):
        self.server.shutdown()
        self.server.server_close()
