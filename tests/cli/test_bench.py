"""``kernelsmith bench``: the built-in suite at a reduced budget, and what users get wrong."""

import json
from io import StringIO

import pytest
from rich.console import Console

from kernelsmith.bench.ledger import RECORDS, read
from kernelsmith.bench.protocol import Status
from kernelsmith.bench.record import Key
from kernelsmith.cli.bench_run import Panel
from kernelsmith.cli.main import main, parser

HURRIED = """
effort = "quick"
confirm_effort = "quick"
concurrency = 1

[remeasure]
champions = false
gain = false
final = 1
"""
"""One process pair for each candidate: the least that is still a measurement."""
PRICED = """
preset = "paper"
seed = 7
[proposer]
kind = "llm"
[[proposer.models]]
name = "m"
temperature = 0.9
usd_per_million_in = 1.0
usd_per_million_out = 2.0
"""
TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()
def get_inputs():
    return [torch.rand(4)]
"""
TASKS = ("gelu_bias", "rms_norm", "softmax")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The rules on three built-in tasks, two steps each, judged on this processor."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "hurried.toml").write_text(HURRIED)
    words = [word for task in TASKS for word in ("--only", task)]
    options = ["--config", str(folder / "hurried.toml"), "--steps", "2", "--json"]
    status = main(["bench", "builtin", *words, *options, "--out", str(folder / "out")])
    return status, folder / "out"


def test_the_built_in_suite_runs_with_the_rules(bench, capsys):
    status, out = bench
    assert status == 0
    records = read(out).records
    assert [record.entry for record in records] == [f"builtin/{task}" for task in TASKS]
    for record in records:
        assert record.passed, record.message
        assert record.device.kind == "cpu"
        assert record.steps >= 2
        assert record.speedup().low > 0
        assert record.own > 0.5
    assert max(record.speedup().value for record in records) > 1
    for name in ("results.json", "report.html", "table.md", "table.tex"):
        assert (out / name).stat().st_size > 500


def test_a_finished_bench_is_shown_again_without_judging(bench, capsys):
    _, out = bench
    written = (out / RECORDS).read_bytes()
    assert main(["bench", "--resume", str(out)]) == 0
    assert "rules" in capsys.readouterr().out
    assert (out / RECORDS).read_bytes() == written
    assert main(["bench", "show", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"] == ["rules"]


def test_results_are_compared_with_themselves(bench, capsys):
    _, out = bench
    assert main(["bench", "compare", str(out), str(out)]) == 0
    assert "rules" in capsys.readouterr().out


@pytest.mark.slow
def test_a_winner_is_judged_again(bench, capsys):
    _, out = bench
    status = main(["bench", "verify", str(out), "--limit", "1", "--effort", "quick", "--json"])
    (winner,) = json.loads(capsys.readouterr().out)["winners"]
    assert winner["standing"] in ("holds", "slower")  # one pair on a busy machine says no more
    assert status == (winner["standing"] == "slower")


def test_a_spoiled_line_is_named_and_the_rest_is_shown(bench, tmp_path, capsys):
    _, out = bench
    lines = (out / RECORDS).read_text().splitlines()
    (tmp_path / RECORDS).write_text("\n".join([lines[0][:50], *lines[1:], ""]))
    assert main(["bench", "show", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert f"{tmp_path / RECORDS}:1: not JSON" in said.err
    assert "rules" in said.out


def test_results_of_two_machines_are_merged(bench, tmp_path, capsys):
    _, out = bench
    assert main(["bench", "merge", str(tmp_path / "both"), str(out), str(out)]) == 0
    assert len(read(tmp_path / "both").records) == 3
    assert "3 records" in capsys.readouterr().out


def test_a_suite_is_listed_with_what_loads_and_what_does_not(tmp_path, capsys):
    body = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    body += "def get_inputs():\n    return [torch.rand(4)]\n"
    for name, text in {
        "1_good": body,
        "2_bad": "import torch\n",
        "3_far": f"import no\n{body}",
    }.items():
        path = tmp_path / "level1" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    suite = f"kernelbench:{tmp_path}"
    assert main(["bench", "list", suite]) == 0
    out = capsys.readouterr().out
    assert "kernelbench/level1/3: needs no: pip install no" in out
    assert f"{suite}: 1 tasks load, 5 do not" in out.replace("\n", "")
    assert main(["bench", "list", suite, "--json", "--only", "level1/*"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["id"] for each in found["tasks"]] == ["kernelbench/level1/1"]
    assert [each["id"] for each in found["absent"]] == [f"kernelbench/level1/{n}" for n in (2, 3)]


def test_a_folder_that_is_called_almost_like_a_verb_is_a_suite(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lst").mkdir()
    (tmp_path / "lst" / "a.py").write_text(TASK)
    assert main(["bench", "list", "folder:lst", "--json"]) == 0
    assert [each["id"] for each in json.loads(capsys.readouterr().out)["tasks"]] == ["lst/a"]
    words = ["bench", "folder:lst", "--backend", "null", "--steps", "1", "--out", "out"]
    assert main(words) == 2  # nothing is judged without a device
    assert "no suite" not in capsys.readouterr().err


def test_what_a_suite_says_is_listed_as_it_is(tmp_path, capsys):
    rows = [
        {"code": TASK, "name": "[16]", "level": "[/x]"},
        {"code": TASK, "name": "b", "level": ":100:"},
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for more, said in (((), ("[/x]", ":100:")), (("--full",), ("set/[/x]/[16]", ":100:"))):
        assert main(["bench", "list", f"table:{tmp_path / 'set.jsonl'}", *more]) == 0
        out = capsys.readouterr().out
        assert all(each in out for each in said)


def test_what_is_under_way_is_shown_as_it_is_called():
    key = Key(entrant="rules", entry="set/[/x]/[16]", seed=0)
    panel = Panel()
    panel(Status(total=1, before=0, running={key: None}))
    console = Console(file=StringIO(), width=80)
    console.print(panel)
    assert "set/[/x]/[16] #0" in console.file.getvalue()


def test_a_suite_is_listed_level_by_level(capsys):
    counts = []
    for words in ([], ["--level", "3"], ["--level", "difficulty 1", "--level", "2"]):
        assert main(["bench", "list", "builtin", "--json", *words]) == 0
        counts.append(len(json.loads(capsys.readouterr().out)["tasks"]))
    assert counts[0] == counts[1] + counts[2]
    assert min(counts) > 5


def test_every_built_in_task_loads(capsys):
    assert main(["bench", "list", "builtin", "--full", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["tasks"]) >= 60
    assert found["absent"] == []
    assert all(each["workloads"] and each["family"] for each in found["tasks"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a suite"),
        (["list"], "kernelsmith bench list SUITE"),
        (["list", "builtin", "--only", "nothing"], "no task of builtin"),
        (["nothing"], "no suite 'nothing'"),
        (["comapre", "here", "there", "--ratio", "call"], "nearest is the verb 'compare'; verbs"),
        (["lst", "builtin", "--full"], "nearest is the verb 'list'; verbs are list, show, compare"),
        (["buitlin", "--limit", "1"], "nearest is the suite 'builtin'"),
        (["exprot"], "are read as 'folder:exprot'"),
        (["builtin", "--steps", "0"], "--steps is at least 1"),
        (["builtin", "--config", "none.toml"], "--steps is at least 1"),
        (["audit", "exprot", "--limit", "0"], "--limit is at least 1; got 0"),
        (["builtin", "aten"], "one suite at a time"),
        (["kernelbench:/nowhere"], "git clone https://github.com/ScalingIntelligence/KernelBench"),
        (["builtin", "--entrant", "jax"], "no entrant 'jax'"),
        (["builtin", "--proposer", "oracle"], "no proposer 'oracle'"),
        (["builtin", "--proposer", "llm"], "needs a model"),
        (["builtin", "--proposer", "runs:."], "holds no run"),
        (["builtin", "--baseline", "jax"], "no baseline 'jax'"),
        (["builtin", "--proposer", "rules", "--proposer", "rules"], "called 'rules'"),
        (["builtin", "--only", "nothing"], "no task of builtin"),
        (["builtin", "--samples", "0"], "at least 1"),
        (["--resume", "nowhere"], "no bench in 'nowhere'"),
        (["--resume", "here", "builtin"], "says what to do"),
        (["--resume", "here", "--steps", "99"], "--steps is as it was begun"),
        (["--resume", "here", "--tests", "9", "--jobs", "2"], "--tests is as it was begun"),
        (["--resume", "here", "--budget-usd", "9"], "--budget-usd is as it was begun"),
        (["builtin", "--only", "gelu_bias", "--only", "nosuchtask"], "called 'nosuchtask'"),
        (["list", "builtin", "--only", "softmax", "--only", "nosuchtask"], "called 'nosuchtask'"),
        (["list", "builtin", "--level", "9"], "is of level '9'; there are difficulty 1"),
        (["show"], "kernelsmith bench show RESULTS"),
        (["compare", "one"], "kernelsmith bench compare A B"),
        (["show", "nowhere"], "no results at"),
        (["audit", "nowhere"], "no folder 'nowhere'"),
        (["show", "here", "--level", "1"], "--level means nothing here: bench show takes --out"),
        (["verify", "here", "--tests", "9"], "--tests means nothing here: bench verify takes"),
        (["list", "builtin", "--limit", "9"], "--limit means nothing here: bench list takes"),
        (["audit", "here", "--backend", "cpu"], "--backend means nothing here: bench audit"),
        (["builtin", "--ratio", "call"], "it goes with show, compare, export"),
        (["builtin", "--model", "m", "--max-usd", "9"], "needs the price of 'm'"),
        (["builtin", "--proposer", "student"], "name it: --model FOLDER"),
        (["builtin", "--model", "./nowhere"], "no such folder"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exprot").mkdir()
    (tmp_path / "none.toml").write_text("[budget]\nsteps = 0\n")
    assert main(["bench", *words]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert said in error
    assert error.startswith("kernelsmith: ")


def test_a_bench_in_which_nothing_can_be_judged_is_a_request_that_cannot_be_met(tmp_path, capsys):
    words = ["bench", "builtin", "--only", "softmax", "--steps", "1", "--backend", "null"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "1 job has no record" in capsys.readouterr().err


def test_the_papers_preset_judges_winners_by_a_hundred_tests():
    from kernelsmith.cli.bench_run import plan_from

    args = parser().parse_args(["bench", "builtin", "--preset", "paper", "--early-stop", "9"])
    plan = plan_from("builtin", args)
    assert (plan.tests, plan.run_config.budget.steps) == (100, 40)
    assert plan.run_config.budget.stale_steps == 9
    assert plan.baselines == ("eager",)


def test_every_model_and_policy_is_an_entrant_of_its_own():
    from kernelsmith.cli.bench_run import plan_from

    words = ["bench", "builtin", "--model", "org/a", "--model", "b", "--base-url", "http://x/v1"]
    words += ["--policy", "evolve", "--policy", "best-of-n", "--entrant", "compile,max-autotune"]
    words += ["--baseline", "eager,compile", "--baseline", "graph", "--proposer", "rules"]
    plan = plan_from("builtin", parser().parse_args(words))
    assert [each.name for each in plan.entrants] == [
        "rules", "rules/best-of-n", "org/a", "org/a/best-of-n", "b", "b/best-of-n", "compile",
        "max-autotune",
    ]  # fmt: skip
    assert plan.baselines == ("eager", "compile", "graph")


def a_file(tmp_path, text):
    (tmp_path / "bench.toml").write_text(text)
    return ["bench", "builtin", "--config", str(tmp_path / "bench.toml")]


def planned(words):
    from kernelsmith.cli.bench_run import plan_from

    return plan_from("builtin", parser().parse_args(words))


def test_whom_a_file_names_is_compared_and_its_preset_and_seed_count(tmp_path):
    words = a_file(tmp_path, PRICED)
    plan = planned(words)
    assert [each.name for each in plan.entrants] == ["m"]
    assert plan.entrants[0].proposer.models[0].temperature == 0.9
    assert (plan.preset, plan.tests, plan.seed) == ("paper", 100, 7)
    assert planned([*words, "--max-usd", "9", "--seed", "3"]).seed == 3
    named = planned([*words, "--model", "m", "--proposer", "rules"])
    assert [each.name for each in named.entrants] == ["rules", "m"]
    assert named.entrants[1] == plan.entrants[0]
    assert [each.name for each in planned([*words, "--entrant", "eager"]).entrants] == ["eager"]


def test_without_a_file_the_rules_are_compared():
    plan = planned(["bench", "builtin"])
    assert [each.name for each in plan.entrants] == ["rules"]
    assert (plan.preset, plan.seed, plan.workers) == ("", 0, 1)


def test_a_model_in_a_folder_is_an_entrant(tmp_path):
    pytest.importorskip("trl", reason="the extra train is not installed")
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "small" / "model.safetensors").write_bytes(b"weights")
    folder = str(tmp_path / "small")
    for words in (["--model", folder], ["--proposer", f"student:{folder}"]):
        (entrant,) = planned(["bench", "builtin", *words]).entrants
        assert (entrant.name, entrant.proposer.kind) == ("student:small", "student")
        assert entrant.proposer.path == folder
        assert entrant.proposer.weights


@pytest.mark.parametrize(
    ("said", "why"),
    [("abc", "numbers or names of GPUs"), ("0,gpu1", "got 'gpu1'"), ("3", "this machine has none")],
)
def test_devices_that_are_none_are_refused_before_anything_begins(
    said, why, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("KERNELSMITH_TRITON", "interpreter")
    words = ["bench", "builtin", "--only", "softmax", "--steps", "1", "--devices", said]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert why in capsys.readouterr().err


def test_tasks_at_a_time_are_spread_over_devices(tmp_path):
    from kernelsmith.bench.crew import LOCAL
    from kernelsmith.bench.protocol import _crew

    plan = planned(["bench", "builtin", "--devices", "0,1", "--jobs", "4"])
    crew = _crew(plan, tmp_path, None, LOCAL, most=9)
    assert [each._device for each in crew] == ["0", "1", "0", "1"]
    assert len(_crew(plan, tmp_path, None, LOCAL, most=1)) == 1
