"""Modules with known answers, run for real: nothing good may fall, nothing bad may pass."""

import ast
from pathlib import Path

import pytest

from kernelsmith.corpus.extract.extract import extract
from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.run.runner import Runner
from kernelsmith.corpus.store import Record, Store

SLOW = ("Endless", "Talks", "Enormous")
PLANTED = Path(__file__).parents[3] / "benchmarks" / "cases" / "corpus"


@pytest.fixture(scope="module")
def records(tmp_path_factory, runner):
    store = Store(tmp_path_factory.mktemp("planted"))
    harvest(store, [str(PLANTED)], licences=("any",), say=lambda text: None)
    extract(store, processes=1, progress=lambda *numbers: None)
    found = {}
    for record in store.stage("extract"):
        file, _, name = record.key.partition(":")[2].rpartition(":")
        if not name.endswith("!file"):
            ready = record.kept and name not in SLOW
            found[Path(file).stem, name] = runner.run(record) if ready else record
    return found


def named(stem):
    tree = ast.parse((PLANTED / "planted" / f"{stem}.py").read_text())
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("name", named("good"))
def test_a_good_module_comes_through(records, name):
    record = records["good", name]
    assert record.kept, (record.reason, record.detail)
    assert "class Model(" in record.text("code")


@pytest.mark.parametrize("name", [n for n in named("bad") if n not in SLOW])
def test_a_bad_module_is_turned_away_with_a_reason(records, name):
    assert records["bad", name].reason


def test_the_reasons_are_the_right_ones(records):
    reasons = {name: record.reason for (stem, name), record in records.items() if stem == "bad"}
    assert reasons["Nothing"] == "returns its input"
    assert reasons["AlmostNothing"] == "returns its input"
    assert reasons["OnlyViews"] == "does no work"
    assert reasons["TestLayer"] == "is a test fixture"
    assert reasons["Constant"] in ("output is constant", "output ignores the inputs")
    assert reasons["IgnoresInputs"] == "output ignores the inputs"
    assert reasons["IgnoresWeights"] == "output ignores the parameters"
    assert reasons["NotANumber"] == "not finite"
    assert reasons["HiddenWeights"] == "does not pass against itself"
    assert reasons["NeedsWhatIsNotHere"] == "needs what is not here"
    assert reasons["Abstract"] == "is abstract"
    assert reasons["DiesHard"] == "ends its process"
    assert reasons["Unset"] == "its weights are never set"


def test_a_random_module_is_marked(records):
    assert records["marked", "Noise"].kept
    assert records["marked", "Noise"].data["random"] is True


def test_free_sizes_become_workloads(records):
    text = records["good", "TwoLayers"].text("code")
    assert "def get_inputs(batch=" in text
    assert records["good", "TwoLayers"].number("workloads") >= 2


def test_the_file_says_where_it_is_from(records):
    assert "planted/good.py:TwoLayers" in records["good", "TwoLayers"].text("code")


def test_an_endless_module_is_ended(runner):
    source = "import torch\nfrom torch import nn\n\nclass A(nn.Module):\n" \
             "    def forward(self, x):\n        while True:\n            pass\n"  # fmt: skip
    record = Record(key="a:b.py:A", data={
        "code": source, "root": "A", "init": {}, "forward": {}, "shapes": {}, "config": "",
        "config_values": {}, "examples": []})  # fmt: skip
    short = Runner(timeout_s=2)
    short._zygote = runner._ready()
    assert short.run(record).reason == "takes too long"


def test_a_finished_file_is_checked_as_it_is(runner, records):
    text = records["good", "TwoLayers"].text("code")
    assert runner.check("k", text).kept
    broken = text.replace("return self.down(F.gelu(self.up(x)))", "return x")
    assert runner.check("k", broken).reason == "returns its input"
