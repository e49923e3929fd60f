"""Tables as they are printed: figures that were worked out by hand, and hostile names."""

import io
import json
import random
import re
from dataclasses import replace

import pytest
from bench_records import a_record, failed, ratio
from bench_synthetic import OTHER, a_bench
from rich.console import Console

from kernelsmith.bench.numbers.compare import compare
from kernelsmith.bench.numbers.findings import as_json, findings
from kernelsmith.bench.numbers.scores import Measure, Unit
from kernelsmith.bench.numbers.statistics import Estimate
from kernelsmith.bench.output import tables
from kernelsmith.bench.output.cells import Cell, cell, written
from kernelsmith.bench.output.sheets import sheets
from kernelsmith.bench.record import Beside, Missing, Rules
from kernelsmith.domain.evaluation import Label, LabelName


@pytest.fixture(scope="module")
def found():
    return findings(a_bench(per_level=6, steps=12, seeds=2))


def printed(found, *, width=100, **options):
    out = io.StringIO()
    tables.terminal(found, Console(file=out, width=width, color_system=None), **options)
    return out.getvalue()


def of(*values, name="rules"):
    return [
        failed(entrant=name, entry=f"s/{i}", points=())
        if value is None
        else a_record(entrant=name, entry=f"s/{i}", points=(), confirmed=True,
                      beside=(Beside(baseline="eager", device=ratio(value), tests=6),))
        for i, value in enumerate(values)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.9633, Unit.SHARE, "96.3 %"), (0.00042, Unit.SHARE, "0.04 %"),
     (3.704, Unit.RATIO, "3.70"), (350.4, Unit.RATIO, "350"),
     (12345.6, Unit.COUNT, "12,346"), (0.0123, Unit.USD, "$0.0123"), (1.5, Unit.USD, "$1.50"),
     (61.4, Unit.SECONDS, "61 s"), (0.5, Unit.STEPS, "0.5")],
)  # fmt: skip
def test_numbers_have_the_digits_that_their_unit_deserves(value, unit, text):
    assert written(value, unit) == text


def test_an_interval_without_width_is_not_shown():
    assert cell(Estimate(value=1.0, low=1.0, high=1.0, tasks=5), Unit.SHARE) == Cell("100.0 %")
    assert cell(None, Unit.RATIO) == Cell("-")
    shown = cell(Estimate(value=0.5, low=0.25, high=0.75, tasks=5), Unit.SHARE)
    assert shown == Cell("50.0 %", "[25, 75]")


@pytest.mark.parametrize(
    ("value", "low", "high", "text", "ends"),
    [(0.0005, 0.0003, 0.0007, "0.05 %", "[0.03, 0.07]"), (0.963, 0.958, 0.968, "96.3 %",
     "[95.8, 96.8]"), (0.0, 0.0, 0.18, "0.0 %", "[0, 18]"), (0.0, 0.0, 0.0, "0.0 %", "")],
)  # fmt: skip
def test_the_ends_of_a_share_are_told_apart(value, low, high, text, ends):
    found = Estimate(value=value, low=low, high=high, tasks=5)
    assert cell(found, Unit.SHARE) == Cell(text, ends)


def test_a_table_holds_the_figures_worked_out_by_hand():
    text = tables.markdown(findings(of(3.0, 0.5, None, 1.0)))
    row = next(line for line in text.splitlines() if line.startswith("| rules |"))
    cells = [each.strip() for each in row.split("|")][1:-1]
    assert cells[1] == "4"
    assert cells[2].startswith("75.0 % [")
    assert cells[4].startswith("25.0 %")  # fast_1: only the 3.0
    assert cells[8].startswith("1.00 [")  # (3 + 0 + 0 + 1) / 4
    assert cells[9].startswith("1.32 [1.00, ")  # 3 ** (1 / 4): what failed or is slower keeps 1
    assert cells[10].startswith("1.14 [")  # 1.5 ** (1 / 3)
    assert cells[12] == "0.71 to 1.73"  # on logarithms: halfway from 0.5 to 1, from 1 to 3
    assert cells[13].startswith("33.3 %")


def test_every_output_holds_the_same_rows(found):
    text, paper = tables.markdown(found), tables.latex(found)
    for sheet in sheets(found):
        assert f"## {sheet.title}" in text
    assert paper.count(r"\begin{table}") == paper.count(r"\end{table}") > 4
    for line in paper.splitlines():
        bare = re.sub(r"\\\\[{}]", "", line)
        assert bare.count("{") == bare.count("}")
    labels = re.findall(r"\\label\{(.*?)\}", paper)
    assert len(set(labels)) == len(labels)


def test_a_paper_has_no_table_wider_than_a_page():
    records = [each for name in SIX for each in of(1.25, 3.0, 0.5, 11.5, name=name)]
    paper = tables.latex(findings(records))
    (overall,) = re.findall(r"\\label\{tab:overall\}.*?\\end\{table\}", paper, re.DOTALL)
    parts = overall.split(r"\begin{tabular}")[1:]
    assert len(parts) == 2
    for part in parts:
        assert len(re.findall(r"^kept speed-up &", part, re.MULTILINE)) == 1
        shown = re.sub(r"\\(?:textbf|scriptsize ?)|[{}\\]", "", part)
        assert max(len(line) for line in shown.splitlines()) <= 90
    assert all(len(re.findall(rf"& {re.escape(name)} [&\\]", overall)) == 1 for name in SIX)


def test_every_part_of_a_table_names_its_rows(found):
    for sheet in sheets(found):
        names = [tuple(each.text for each in row[: sheet.text_columns]) for row in sheet.rows]
        assert len(set(names)) == len(names), sheet.title


def test_why_something_failed_is_said():
    crash = "Traceback (most recent call last):\n  File x\nRuntimeError: no <such> kernel"
    records = [
        *of(2.0, None),
        failed(entry="s/2", message=crash, seed=3),
        failed(entry="s/3", verdict=None, message="every reply was refused\nat length"),
    ]
    found = findings(records)
    assert [row["message"] for row in json.loads(as_json(found))["records"]["rules"]] == [
        "", "off by 3", crash, "every reply was refused\nat length",
    ]  # fmt: skip
    text = tables.markdown(found).partition("## What failed, and why")[2]
    assert "| s/1 | rules | 0 | wrong | off by 3 |" in text
    assert "| s/2 | rules | 3 | wrong | RuntimeError: no &lt;such> kernel |" in text
    assert "| s/3 | rules | 0 | nothing | every reply was refused |" in text
    assert "s/0" not in text
    assert "What failed" not in tables.markdown(findings(of(2.0, 3.0)))


def test_markdown_tables_are_whole(found):
    width = None
    for line in tables.markdown(found).splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert width in (None, cells)
        width = cells


def test_a_narrow_terminal_shows_the_headline(found):
    text = printed(found, width=80)
    assert "Speed-up over eager, device time" in text
    assert "average ratio" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "What few steps give" in text
    assert "Rescued and persistent" not in text
    assert "Rescued and persistent" in printed(found, width=200, full=True)


SIX = ("rules", "compile", "max-autotune", "org/large-model", "small", "agent")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_figure_is_broken_on_a_narrow_terminal(width):
    records = [each for name in SIX for each in of(1.25, 3.0, 0.5, 11.5, name=name)]
    text = printed(findings(records), width=width)
    assert max(map(len, text.splitlines())) <= width
    main = text.partition("Pairs of systems")[0]
    for name in SIX:
        assert re.search(rf"(?<!\S){re.escape(name)}(?!\S)", main)
    row = re.findall(r"geometric mean .*", main)
    assert sum(line.count("[") for line in row) == len(SIX)  # each figure beside its interval
    assert "0.99 to 4.20" in main  # quartiles of logarithms


def test_what_is_known_against_a_baseline_or_a_winner_is_said():
    wide = Label(name=LabelName.NOISY, reason="wide")
    graph = Beside(baseline="graph", trouble="a processor has no graphs")
    compiled = Beside(baseline="compile", device=ratio(2.0), tests=6)
    rules = [replace(each, beside=(*each.beside, compiled, graph), labels=(wide,))
             for each in of(1.5, 2.0)]  # fmt: skip
    spoiled = Beside(baseline="compile", trouble="the compiler fails")
    rules[0] = replace(rules[0], beside=(*rules[0].beside[:1], spoiled, graph), labels=())
    itself = Beside(baseline="compile", trouble="it is this baseline itself")
    same = [replace(each, beside=(*each.beside, itself)) for each in of(1.1, 1.2, name="compile")]
    found = findings([*rules, *same])
    text = " ".join(printed(found, width=200).split())
    assert "over graph: nobody could be timed: a processor has no graphs" in text
    assert "compile is this baseline itself, and has no ratio to it" in text
    assert "compile: 2 winners could not be timed" not in text
    assert "rules: 1 winners could not be timed over compile, device time: the compiler" in text
    noisy = "rules: noisy winners (their own intervals stayed wider than asked for): 1"
    assert text.count(noisy) == 1
    assert json.loads(as_json(found))["untimed"] == {"graph": "a processor has no graphs"}


def test_suspect_tasks_are_left_out_of_a_table_of_their_own():
    records = of(1.0, 4.0, 2.0)
    records[0] = replace(records[0], note="suspect: zeros pass at 1e-2")
    records[1] = replace(records[1], note="degenerate: zeros pass")
    found = findings(records)
    assert (found.degenerate, found.suspect) == (("s/1",), ("s/0",))
    assert (found.sound[0].tasks, found.clear[0].tasks) == (2, 1)
    for text in (printed(found), tables.markdown(found), tables.latex(found)):
        assert "Without degenerate and suspect tasks" in text
    assert "suspect" not in printed(findings(of(1.0, 2.0)))


def test_a_caption_is_made_of_sentences():
    records = of(2.0, 3.0, 4.0) + of(2.0, 3.0, name="compile")
    (caption,) = re.findall(r"\\caption\{(Speed-up over eager, device time\..*)\}",
                            tables.latex(findings(records)))  # fmt: skip
    assert ". Only the 2 tasks" in caption
    assert not re.search(r"\. [a-z]", caption)


def test_unequal_task_sets_are_said_and_each_systems_own_table_follows():
    records = of(2.0, 3.0, 4.0) + of(2.0, 3.0, name="compile")
    text = printed(findings(records))
    assert "only the 2 tasks that all systems have count" in text
    assert "Each system on all of its own tasks" in text


def test_systems_without_a_common_task_are_not_compared():
    other = [a_record(entrant="b", entry="elsewhere/1")]
    found = findings(of(2.0) + other)
    assert found.tasks == 0
    assert found.pairs == ()
    assert "only the 0 tasks" in found.said
    assert "Each system on all of its own tasks" in printed(found)


def test_no_records_give_empty_outputs():
    found = findings([], missing=[Missing(entry="s/1", reason="needs a download")])
    assert "needs a download" in printed(found)
    assert json.loads(as_json(found))["tasks"] == 0


def test_names_from_elsewhere_cannot_break_a_table():
    nasty = "a|b\\&_%[0]\n`x`<i>"
    records = of(2.0, 3.0, name=nasty) + of(1.0, 2.0)
    found = findings(records)
    text = tables.markdown(found)
    assert "<i>" not in text
    assert r"a\|b\\&_%[0] \`x\`&lt;i>" in text
    paper = tables.latex(found)
    assert r"a|b\textbackslash{}\&\_\%{[}0{]} `x`$<$i$>$" in paper
    assert "[0]" in printed(found)


def test_results_json_is_strict_and_complete(found):
    body = json.loads(as_json(found), parse_constant=lambda name: pytest.fail(name))
    assert body["schema"] == "bench-results/1"
    assert set(body["overall"]) == {
        "over eager, device time", "over eager, plain calls", "over eager, mean of plain calls",
        "over compile, device time", "over compile, plain calls",
    }  # fmt: skip
    large = body["overall"]["over eager, device time"][0]
    assert large["figures"]["average"]["low"] < large["figures"]["average"]["value"]
    assert body["searches"]["large"]["reached"][-1]["share"]["value"] == 1.0
    assert len(body["records"]["large"]) == 36
    assert body["explained"]["factors"][0]["name"] == "category"


def test_the_same_records_give_the_same_results_in_any_order(found):
    records = a_bench(per_level=6, steps=12, seeds=2)
    random.Random(3).shuffle(records)
    again = findings(records)
    assert as_json(again) == as_json(found)


def test_what_was_run_by_the_papers_protocol_is_shown_by_its_mean():
    beside = (Beside(baseline="eager", device=ratio(3.0), call=ratio(2.5), mean=ratio(2.6),
                     tests=100),)  # fmt: skip
    paper = [a_record(entry=f"s/{i}", beside=beside, rules=Rules(preset="paper")) for i in range(2)]
    assert findings(paper).measure == Measure(how="mean")
    assert findings([*paper, a_record(entry="s/2")]).measure == Measure()


def test_two_devices_are_compared_kernel_by_kernel():
    here = a_bench(systems=(("large", 0.95),), per_level=4, steps=6, seeds=1)
    there = a_bench(systems=(("large", 0.95),), per_level=4, steps=6, seeds=1, device=OTHER)
    found = findings(here + there)
    assert found.across is not None
    assert len(found.systems) == 4
    assert "The same kernels on several devices" in printed(found)


def test_a_comparison_is_printed_with_tests_and_the_tasks_that_moved():
    found = compare(of(1.0, 2.0, None, 1.5), of(2.0, 2.0, 3.0, None), names=("old", "new"))
    out = io.StringIO()
    tables.comparison(found, Console(file=out, width=100, color_system=None))
    text = out.getvalue()
    assert "rules (new) against rules (old)" in text
    assert "signed rank" in text
    assert "2.000x" in text
    assert "failed" in text
    assert "## Tasks that moved most" in tables.comparison_markdown(found)
