"""The published sets' columns, both ways, and verl's."""

import asyncio
import importlib.util
import json
import subprocess

import pytest
from training_parts import judged, null_runs

from kernelsmith.domain.codec import loads
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.run.simulated import JUDGE as SIMULATED
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.training.data.build import Recipe, build
from kernelsmith.training.data.rows import check_questions
from kernelsmith.training.parents import judge_parents, parents_in
from kernelsmith.training.published import imported, rl_records, sft_records
from kernelsmith.training.recipes.judging import Opened
from kernelsmith.training.recipes.store import Store
from kernelsmith.training.tables import read_records, write_records
from kernelsmith.training.verl import COLUMNS, VerlOptions, export_verl, launch_script

REFERENCE = "class Model: pass\n"
RL = {
    "prompt": [{"role": "user", "content": "make it faster"}],
    "reward_model": {"ground_truth": {"reference_code": REFERENCE}},
    "extra_info": {"parent_code": "class ModelNew: pass\n"},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    null_runs(folder, count=5, steps=16)
    return build([folder], Recipe())


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_rows_survive_the_published_form(built, tmp_path, suffix):
    path = tmp_path / f"rl{suffix}"
    write_records(rl_records(built.rl), path)
    found = imported(read_records(path), backend="triton")
    assert found.unjudged == 0
    for mine, theirs in zip(built.rl, found.rl, strict=True):
        assert theirs.prompt == mine.prompt
        assert theirs.asked == mine.asked, "nothing is measured again"
        assert (theirs.form, theirs.backend) == ("typed", "null")
        assert theirs.parent_speedup == mine.parent_speedup


def bare(record):
    """A record as others publish them, without what is ours."""
    extra = {name: record["extra_info"][name] for name in ("task", "parent_code")}
    return record | {"extra_info": extra}


def test_without_our_brief_parents_are_measured(built):
    records = [bare(each) for each in rl_records(built.rl)]
    found = imported(records, backend="null", judge=SimulatedEvaluator().judge)
    assert {row.form for row in found.rl} == {"whole"}
    for mine, theirs in zip(built.rl, found.rl, strict=True):
        assert theirs.asked.parent.candidate.id == mine.asked.parent.candidate.id
        assert theirs.asked.task.source == mine.asked.task.source
    assert imported(records, backend="null").unjudged == len(records)


class Losing:
    """Judges, loses whatever comes third and later, and counts."""

    def __init__(self, patience):
        self.asked, self._patience = 0, patience

    async def evaluate(self, task, candidate, *, baseline=None):
        self.asked += 1
        if self.asked > self._patience:
            raise EvaluationLost("the machine was switched off")
        return await SimulatedEvaluator().evaluate(task, candidate)


def test_measuring_parents_that_was_left_goes_on_and_says_how_far_it_is(built, tmp_path):
    parents = parents_in([bare(each) for each in rl_records(built.rl)], "null")
    assert len(parents) > 3
    counts, said = [], []
    for patience in (2, 99, 99):
        evaluator, store = Losing(patience), Store(tmp_path / "s.jsonl", judge=SIMULATED)
        opened = Opened(evaluator=evaluator)
        asyncio.run(judge_parents(parents, opened, store, in_flight=2, say=said.append))
        counts.append((evaluator.asked, len(store)))
        store.close()
    every = len(parents)
    assert counts == [(every, 2), (every - 2, every), (0, every)]
    assert f"parent 1 of {every}, e0: passed" in said
    assert any("not judged: the machine was switched off" in each for each in said)
    assert f"2 of {every} parents were judged before" in said


def test_a_question_about_a_program_that_nobody_measured_is_refused_before_training(built):
    rows = imported([bare(each) for each in rl_records(built.rl)], backend="null").rl
    with pytest.raises(UsageError, match=f"{len(rows)} of .* train import --judge"):
        check_questions(rows)
    check_questions(built.rl)


def test_supervised_chats_end_with_the_assistant(built, tmp_path):
    write_records(sft_records(built.sft), tmp_path / "sft.parquet")
    found = imported(read_records(tmp_path / "sft.parquet"), backend="null")
    assert [row.completion for row in found.sft] == [row.completion for row in built.sft]
    assert {row.form for row in found.sft} == {"typed"}


def test_the_three_sets_are_told_apart_by_their_columns():
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    found = imported(
        [{"code": REFERENCE, "name": "seed one"}, {"messages": chat}, RL, {"nothing": 1}],
        backend="triton", judge=lambda task, candidate: judged(1.5, task=task.name),
    )  # fmt: skip
    assert [task.name for task in found.seeds] == ["seed_one"]
    assert len(found.sft) == len(found.rl) == 1
    assert found.rl[0].asked.parent.evaluation.timing.speedup.value == 1.5
    assert "no code in it" in found.skipped[0]


def test_ground_truth_may_be_text_and_parents_unjudged():
    record = RL | {"reward_model": {"ground_truth": json.dumps({"reference_code": REFERENCE})}}
    found = imported([record], backend="triton")
    assert found.rl[0].form == "whole"
    with pytest.raises(UsageError, match=r"has no brief.*train import --judge"):
        _ = found.rl[0].asked


def test_a_file_of_something_else_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(UsageError, match="no record could be read; the first: record 0"):
        imported(read_records(tmp_path / "a.jsonl"), backend="cpu")
    (tmp_path / "b.parquet").write_bytes(b"not parquet")
    with pytest.raises(UsageError, match="cannot read"):
        read_records(tmp_path / "b.parquet")


def test_verl_gets_its_columns_a_reward_and_a_script_that_shells_accept(built, tmp_path):
    export_verl(built.rl, built.sft, built.held_out, tmp_path, VerlOptions())
    rows = read_records(tmp_path / "train.parquet")
    assert set(rows[0]) == set(COLUMNS)
    assert rows[0]["prompt"][0]["role"] == "system"
    assert loads(rows[0]["extra_info"]["brief"]).task.name == built.rl[0].task
    assert "messages" in read_records(tmp_path / "sft.parquet")[0]
    checked = subprocess.run(["bash", "-n", str(tmp_path / "launch.sh")], check=False)
    assert checked.returncode == 0


def test_large_models_get_pipeline_stages():
    small, large = (
        launch_script(VerlOptions()),
        launch_script(VerlOptions(model="Q/Qwen3-235B-A22B")),
    )
    assert "pipeline_model_parallel_size=1 " in small
    assert "pipeline_model_parallel_size=8 " in large
    with pytest.raises(UsageError, match="no reward 'gold'"):
        VerlOptions(reward="gold")


def test_the_reward_file_judges_an_answer_as_training_here_does(built, tmp_path, monkeypatch):
    pytest.importorskip("httpx")
    export_verl(built.rl, built.sft, built.held_out, tmp_path, VerlOptions(reward="paper"))
    spec = importlib.util.spec_from_file_location("verl_reward", tmp_path / "reward.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "_evaluator", lambda backend: SimulatedEvaluator())
    row = read_records(tmp_path / "train.parquet")[0]

    def scored(answer):
        extra = row["extra_info"]
        return asyncio.run(module.compute_score("kernelsmith", answer, None, extra))

    parent = loads(row["extra_info"]["brief"]).parent.candidate.source
    edit = "unit 0" if "* 1" in parent else "zero 0" if "+ 0" in parent else "double 0"
    right, none = scored(edit), scored("hello")
    assert right["correct"] == 1.0
    assert right["score"] == pytest.approx(right["gain"])
    assert right["gain"] > 1.0
    assert (none["score"], none["readable"]) == (0.0, 0.0)
    assert none["outcome"].startswith("rejected")
