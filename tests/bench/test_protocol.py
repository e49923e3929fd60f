"""The protocol: jobs over workers, records kept, benches taken up again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench_parts import STEPS, NullSuite, a_config, a_plan, a_recording, quiet
from bench_records import a_record

from kernelsmith.bench.entrant import searching
from kernelsmith.bench.ledger import RECORDS, Ledger, Results, read
from kernelsmith.bench.numbers.findings import findings
from kernelsmith.bench.output.tables import markdown
from kernelsmith.bench.plan import chosen, differences, jobs_of, load
from kernelsmith.bench.protocol import Ended, carried_out
from kernelsmith.bench.record import Fault, Missing
from kernelsmith.bench.suite import Absent
from kernelsmith.cli.bench_run import plan_from, reported
from kernelsmith.cli.main import parser
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import UsageError
from kernelsmith.propose.models import ModelConfig
from kernelsmith.run.config import Budget, ProposerSpec

WRONG_ONLY = ["x - y", "x * y", "x +"]


def gone(plan, folder, **more):
    return carried_out(plan, folder, quiet, suite=more.get("suite", NullSuite()))


def table(folder):
    results = read(folder)
    return markdown(findings(results.records, missing=results.missing))


@pytest.fixture
def recording(tmp_path):
    return a_recording(tmp_path / "one.jsonl")


def test_a_record_holds_what_a_search_did(tmp_path, recording):
    ended = gone(a_plan(recording), tmp_path / "out")
    record = ended.results.records[0]
    verdicts = [point.verdict for point in record.points]
    assert verdicts[:4] == [Verdict.WRONG, Verdict.BUILD_FAILED, None, Verdict.PASSED]
    assert (record.passed, record.best_step, record.steps) == (True, 5, STEPS)
    assert record.speedup().value == pytest.approx(1.98, abs=0.02)
    assert record.best_by_step()[-1] == record.speedup()
    assert record.points[5].parent == 3
    assert record.cost.tokens == 6 * 110
    assert record.rules.steps == STEPS
    assert record.archive.cells > 0
    assert (record.level, record.family, record.name) == ("level 1", "sum", "t0")
    assert (tmp_path / "out" / record.run / "journal.jsonl").is_file()
    assert ended.results.source_of(record).startswith("y + x")


def test_what_the_suite_cannot_give_is_listed_with_its_reason(tmp_path, recording):
    plan, out = a_plan(recording), tmp_path / "out"
    assert gone(plan, out).results.missing == (
        Missing(entry="nulls/gone", reason="needs a package"),
    )
    gone(plan, out)
    assert (out / RECORDS).read_text().count("needs a package") == 1


def test_a_task_with_records_is_not_listed_as_missing_again(tmp_path, recording):
    class Poorer(NullSuite):
        def entries(self):
            for each in super().entries():
                yield Absent(id=each.id, reason="gone") if each.id == "nulls/t0" else each

    plan, out = a_plan(recording), tmp_path / "out"
    gone(plan, out)
    for _ in range(2):
        assert [each.entry for each in gone(plan, out, suite=Poorer()).results.missing] == [
            "nulls/gone"
        ]
    assert "nulls/t0" not in [
        json.loads(line)["entry"]
        for line in (out / RECORDS).read_text().splitlines()
        if '"kind": "missing"' in line
    ]


def test_where_nothing_passes_the_record_says_how_far_it_came(tmp_path):
    recording = a_recording(tmp_path / "bad.jsonl", kinds=WRONG_ONLY)
    record = gone(a_plan(recording), tmp_path / "out").results.records[0]
    assert record.verdict is Verdict.WRONG
    assert record.message == "the outputs differ"
    assert (record.beside, record.winner, record.best_step) == ((), None, None)


def test_entrants_and_seeds_are_jobs_of_their_own(tmp_path, recording):
    other = a_recording(tmp_path / "two.jsonl", seed=1)
    ended = gone(a_plan(recording, other, samples=2), tmp_path / "out")
    keys = [(each.entrant, each.entry, each.seed) for each in ended.results.records]
    assert len(set(keys)) == len(keys) == 2 * 3 * 2
    assert keys[:4] == [
        ("replay:one", "nulls/t0", 0), ("replay:two", "nulls/t0", 0),
        ("replay:one", "nulls/t0", 1), ("replay:two", "nulls/t0", 1),
    ]  # fmt: skip


def test_tasks_go_over_several_workers(tmp_path, recording):
    ended = gone(a_plan(recording, samples=2, workers=2), tmp_path / "out")
    assert len(ended.results.records) == 6
    assert {path.name for path in (tmp_path / "out" / "log").iterdir()} == {
        "worker0.log", "worker1.log",
    }  # fmt: skip


def test_a_second_time_nothing_is_done_again(tmp_path, recording):
    plan, out = a_plan(recording), tmp_path / "out"
    first = gone(plan, out).results
    written = (out / RECORDS).read_bytes()
    seen = []
    again = carried_out(plan, out, seen.append, suite=NullSuite()).results
    assert again.records == first.records
    assert (out / RECORDS).read_bytes() == written
    assert seen[0].before == 3


def test_a_folder_of_another_bench_is_refused_by_what_differs(tmp_path, recording):
    plan, out = a_plan(recording), tmp_path / "out"
    gone(plan, out)
    with pytest.raises(UsageError, match=r"its samples differ \(1, now 2\)"):
        gone(replace(plan, samples=2), out)
    gone(replace(plan, workers=2, max_usd=3.0), out)  # neither changes a number
    longer = a_plan(recording, config=a_config(budget=Budget(steps=9), timeout_s=7.0))
    with pytest.raises(UsageError) as refused:
        gone(longer, out)
    assert f"in budget.steps ({STEPS}, now 9), timeout_s (" in str(refused.value)
    assert "now 7.0)" in str(refused.value)


def test_a_plan_means_the_same_from_any_folder(tmp_path, recording, monkeypatch):
    gone(a_plan(recording, limit=1), tmp_path / "runs")
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["bench", "folder:mine", "--proposer", "runs:runs"]
    plan = plan_from("folder:mine", parser().parse_args(words))
    assert plan.suite == f"folder:{tmp_path / 'mine'}"
    assert plan.entrants[0].runs == str(tmp_path / "runs")
    assert plan.entrants[0].name == "runs"
    # as it was written down before: from here it is the same
    before = replace(plan, suite="folder:mine", entrants=(replace(plan.entrants[0], runs="runs"),))
    assert differences(before, plan) == ""
    monkeypatch.chdir("/")
    assert "its suite differs" in differences(before, plan)


def test_a_plan_is_read_as_it_was_written(tmp_path, recording):
    plan = a_plan(recording, baselines=("eager", "compile"), only=("t*",), max_usd=2.0)
    plan.save(tmp_path)
    assert load(tmp_path) == plan


def test_only_what_is_asked_for_is_run(recording):
    def entries(**asked):
        return [each.id for each in chosen(a_plan(recording, **asked), NullSuite())[0]]

    assert entries(only=("t1",)) == ["nulls/t1"]
    assert entries(only=("nulls/t[12]",)) == ["nulls/t1", "nulls/t2"]
    assert entries(levels=("2",)) == ["nulls/t2"]
    assert entries(limit=2) == ["nulls/t0", "nulls/t1"]
    assert entries(sample=1) == ["nulls/t0", "nulls/t2"]
    with pytest.raises(UsageError, match="no task of"):
        entries(only=("t9",))


def test_every_word_must_mean_a_task_and_every_level_one_that_there_is(recording):
    def entries(**asked):
        return [each.id for each in chosen(a_plan(recording, **asked), NullSuite())[0]]

    with pytest.raises(UsageError, match="no task of builtin is called 'nosuch'"):
        entries(only=("t1", "nosuch"))
    with pytest.raises(UsageError, match="is of level '9'; there are level 1, level 2"):
        entries(levels=("1", "9"))
    assert entries(only=("t0", "t1", "gone"), limit=1) == ["nulls/t0"]


def test_what_is_absent_from_other_levels_or_behind_the_limit_is_not_listed(recording):
    class Gaps(NullSuite):
        def entries(self):
            for number, each in enumerate(super().entries()):
                yield Absent(id=f"nulls/gap{number}", reason="gone", level=f"level {number}")
                yield each

    def absent(**asked):
        return [each.id for each in chosen(a_plan(recording, **asked), Gaps())[1]]

    assert absent() == [f"nulls/gap{n}" for n in range(4)] + ["nulls/gone"]
    assert absent(levels=("2",)) == ["nulls/gap2", "nulls/gone"]  # whose level nobody knows
    assert absent(limit=2) == ["nulls/gap0", "nulls/gap1"]


def test_money_ends_a_bench_and_more_of_it_goes_on(tmp_path):
    recording = a_recording(tmp_path / "paid.jsonl", usd=0.10)
    plan, out = a_plan(recording, max_usd=0.7), tmp_path / "out"
    ended = gone(plan, out)
    # 0.60 for the first; of what is left the second may spend 0.10 and no more
    assert [len(each.points) for each in ended.results.records] == [STEPS]
    assert sum(each.cost.usd for each in ended.results.records) <= 0.9
    assert ended.unbegun == 2
    more = gone(replace(plan, max_usd=10.0), out)
    assert more.unbegun == 0
    # whom the money cut short has gone on where it was: the limit changes no number
    unlimited = gone(replace(plan, max_usd=None), tmp_path / "unlimited").results.records
    assert [len(each.points) for each in more.results.records] == [STEPS] * 3
    assert [each.best_step for each in more.results.records] == [
        each.best_step for each in unlimited
    ]


def test_what_a_search_without_a_record_has_spent_counts_in_the_next_session(tmp_path):
    recording = a_recording(tmp_path / "paid.jsonl", usd=0.10)
    plan, out = a_plan(recording, max_usd=0.3), tmp_path / "out"
    assert gone(plan, out).results.records == ()
    seen = []
    again = carried_out(plan, out, lambda status: seen.append(status.usd), suite=NullSuite())
    assert again.unbegun == 3
    assert min(seen) >= 0.3


def test_searches_side_by_side_share_the_money(tmp_path):
    recording = a_recording(tmp_path / "paid.jsonl", usd=0.10)
    plan, out = a_plan(recording, max_usd=0.8, workers=3, samples=2), tmp_path / "out"
    gone(plan, out)
    jobs = jobs_of(plan, NullSuite(), chosen(plan, NullSuite())[0], out, gpu=False)
    spent = sum(job.paid_usd for job in jobs)
    assert 0.8 <= spent <= 0.8 + 3 * 0.10  # the last step of each may go beyond


def test_a_session_that_is_over_begins_nothing_and_the_next_goes_on(tmp_path, recording):
    plan, out = a_plan(recording), tmp_path / "out"
    ended = gone(replace(plan, max_seconds=1e-9), out)
    assert (len(ended.results.records), ended.unbegun) == (0, 3)
    assert len(gone(plan, out).results.records) == 3


def test_a_search_ends_early_by_its_rule(tmp_path):
    kinds = ["y + x  # us: 50"] + [f"y + x + {n}*0  # us: 80" for n in range(9)]
    recording = a_recording(tmp_path / "stale.jsonl", kinds=kinds, steps=10)
    config = a_config(budget=Budget(steps=10, stale_steps=3), concurrency=1)
    record = gone(a_plan(recording, config=config), tmp_path / "out").results.records[0]
    assert (record.stop, record.steps, record.rules.early_stop) == ("stale", 4, 3)


def test_a_recording_for_each_task_is_found_by_its_name(tmp_path, recording):
    gone(a_plan(recording), tmp_path / "first")
    runs = tmp_path / "first" / "runs"
    again = gone(a_plan(runs), tmp_path / "second").results.records
    assert [record.entry for record in again] == ["nulls/t0", "nulls/t1", "nulls/t2"]
    assert again[0].speedup() == read(tmp_path / "first").records[0].speedup()


def test_a_recording_is_found_by_its_place_whatever_the_first_seed(tmp_path, recording):
    gone(a_plan(recording, samples=2), tmp_path / "first")
    plan = a_plan(tmp_path / "first" / "runs", samples=2, seed=5)
    ended = gone(plan, tmp_path / "second")
    assert sorted(record.seed for record in ended.results.records) == [5, 5, 5, 6, 6, 6]


def test_a_bench_is_not_gone_on_with_on_another_device(tmp_path, recording):
    plan, out = a_plan(recording, limit=1), tmp_path / "out"
    gone(plan, out)
    records = out / RECORDS
    records.write_text(
        records.read_text().replace('"name": "simulated clock"', '"name": "another"')
    )
    assert {record.device.name for record in read(out).records} == {"another"}
    (out / "bench.json").unlink()
    ended = gone(replace(plan, limit=None), out)
    assert "begun on 'another', and this is" in ended.fatal
    assert len(ended.results.records) == 1


def test_runs_made_elsewhere_are_judged_and_recorded(tmp_path, recording):
    from kernelsmith.bench.entrant import recorded

    gone(a_plan(recording), tmp_path / "first")
    plan = replace(a_plan(recording), entrants=(recorded(tmp_path / "first", "agent"),), samples=2)
    ended = gone(plan, tmp_path / "second")
    first = ended.results.records[0]
    assert (first.entrant, first.steps, first.best_step, first.passed) == ("agent", STEPS, 5, True)
    assert len(ended.results.records) == 3
    assert "no recorded run of 't0' for seed 1" in ended.results.missing[1].reason


def test_recorded_winners_are_of_the_device_that_judges_them(tmp_path, recording):
    from kernelsmith.bench.entrant import recorded

    first, out = tmp_path / "first", tmp_path / "second"
    gone(a_plan(recording), first)
    for file in first.rglob("*.jsonl"):  # as a machine elsewhere would have written them
        file.write_text(file.read_text().replace('"simulated clock"', '"faraway clock"'))
    plan = replace(a_plan(recording), entrants=(recorded(first, "agent"),))
    here = gone(plan, out).results.records
    assert {record.device.name for record in here} == {"simulated clock"}
    both = findings(read(first, out).records).across
    assert both.devices == ("faraway clock (null)", "simulated clock (null)")
    assert len(both.spreads) == 3


def test_a_task_that_cannot_be_judged_is_missing_and_tried_again(tmp_path, recording):
    plan, out = a_plan(recording, limit=1), tmp_path / "out"
    broken = NullSuite(source="x +  # us: 100")
    ended = gone(plan, out, suite=broken)
    assert ended.results.records == ()
    assert "is no null expression" in ended.results.missing[-1].reason
    assert ended.results.missing[-1].entrant == "replay:one"
    assert ended.results.missing[-1].fault is Fault.REQUEST
    assert len(gone(plan, out).results.records) == 1


def test_a_task_that_was_changed_is_run_again(tmp_path, recording):
    plan, out = a_plan(recording, limit=1), tmp_path / "out"
    gone(plan, out)
    slower = gone(plan, out, suite=NullSuite(source="x + y  # us: 200")).results
    assert len(slower.records) == 1
    assert slower.records[0].speedup().value == pytest.approx(3.96, abs=0.05)


def test_a_worker_that_dies_costs_its_job_only(tmp_path, recording, monkeypatch):
    killer = tmp_path / "sitecustomize.py"
    # the process ends by itself whenever it opens the journal of task t1
    killer.write_text(
        "import os, sys\n"
        "def die(event, args):\n"
        "    if event == 'open' and isinstance(args[0], str) and '/t1/' in args[0]:\n"
        "        os._exit(9)\n"
        "sys.addaudithook(die)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ended = gone(a_plan(recording), tmp_path / "out")
    assert [record.entry for record in ended.results.records] == ["nulls/t0", "nulls/t2"]
    assert "its process died 2 times" in ended.results.missing[-1].reason
    assert ended.results.missing[-1].fault is Fault.OURS


@pytest.fixture
def refusing():
    """An endpoint that refuses every key, and how often it was asked."""
    asked = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            self.send_error(401)

        def log_message(self, *said):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
        server.shutdown()


def test_an_endpoint_that_cannot_be_asked_ends_the_bench_and_not_every_task(tmp_path, refusing):
    url, asked = refusing
    spec = ProposerSpec(kind="llm", models=(ModelConfig(name="m", base_url=url),))
    config = a_config(concurrency=1)
    plan = a_plan(config=config, entrants=(searching(spec),))
    ended = gone(plan, tmp_path / "out")
    assert "refuses the key for model 'm'" in ended.fatal
    assert len(asked) == 1
    assert [each.entry for each in ended.results.missing] == ["nulls/gone"]


@pytest.mark.parametrize(
    ("faults", "status"),
    [([Fault.OURS, Fault.REQUEST], 3), ([Fault.REQUEST], 2), ([None], 2), ([], 0)],
)
def test_whose_fault_it_is_that_something_is_missing_is_the_exit_status(
    faults, status, tmp_path, capsys
):
    missing = tuple(
        Missing(entry=f"s/{number}", entrant="rules", reason="so", fault=fault)
        for number, fault in enumerate(faults)
    )
    absent = Missing(entry="s/x", reason="needs a download")
    results = Results(records=(a_record(),), missing=(*missing, absent), homes=(tmp_path,))
    args = parser().parse_args(["bench", "s"])
    assert reported(Ended(results=results), tmp_path, args) == status


def test_what_ends_a_bench_is_one_line_or_comes_behind_what_there_is(tmp_path, capsys):
    args = parser().parse_args(["bench", "s"])
    with pytest.raises(UsageError, match=r"^nobody answers$"):
        reported(Ended(results=Results(), fatal="nobody answers"), tmp_path, args)
    results = Results(records=(a_record(),), homes=(tmp_path,))
    with pytest.raises(UsageError, match="nobody answers; then go on with: kernelsmith bench --r"):
        reported(Ended(results=results, fatal="nobody answers"), tmp_path, args)
    assert str(tmp_path / "table.md") in capsys.readouterr().out


def test_a_bench_goes_on_where_nobody_looks_on_any_more(tmp_path, recording):
    told = []

    def looked_at(status):
        told.append(status.done)
        raise BrokenPipeError

    ended = carried_out(a_plan(recording), tmp_path / "out", looked_at, suite=NullSuite())
    assert len(told) == 1
    assert len(ended.results.records) > 1
    assert not ended.stopped


def test_the_exit_status_stands_though_nobody_reads_the_table(tmp_path):
    write = (
        "import sys; from pathlib import Path; from kernelsmith.bench.protocol import Ended\n"
        "from kernelsmith.bench.ledger import read\n"
        "from kernelsmith.cli.bench_run import reported\n"
        "from kernelsmith.cli.main import parser\n"
        "folder = Path(sys.argv[1]); args = parser().parse_args(['bench', 's'])\n"
        "sys.exit(reported(Ended(results=read(folder), unbegun=1), folder, args))\n"
    )
    with Ledger(tmp_path / RECORDS) as ledger:
        ledger.append(a_record())
    away, gone_too = os.pipe()
    os.close(away)
    for streams in ({"stdout": gone_too}, {"stderr": gone_too}):
        done = subprocess.run([sys.executable, "-c", write, str(tmp_path)], check=False, **streams)
        assert done.returncode == 2
        assert (tmp_path / "results.json").is_file()
    os.close(gone_too)


def test_where_every_proposal_is_rejected_the_record_says_why(tmp_path):
    empty = a_recording(tmp_path / "one.jsonl", kinds=[None, None])
    record = gone(a_plan(empty, limit=1), tmp_path / "out").results.records[0]
    assert (record.verdict, record.steps, record.message) == (None, 2, "no code")


SLOW = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from bench_parts import NullSuite, a_plan, quiet
from kernelsmith.bench.protocol import carried_out

folder = Path({folder!r})
ended = carried_out(a_plan({recording!r}, samples=4), folder, quiet, suite=NullSuite())
sys.exit(130 if ended.stopped else 0)
"""


def begun(folder, recording):
    here = str(Path(__file__).parent)
    code = SLOW.format(here=here, folder=str(folder), recording=str(recording))
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def wait_for_records(folder, count):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        path = folder / RECORDS
        if path.exists() and path.read_text().count('"kind": "record"') >= count:
            return
        time.sleep(0.005)
    pytest.fail("no record in time")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_bench_that_is_taken_up_gives_the_same_table(tmp_path, recording, how):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    gone(a_plan(recording, samples=4), whole)
    bench = begun(broken, recording)
    wait_for_records(broken, 2)
    os.kill(bench.pid, how)
    status = bench.wait(30)
    if how is signal.SIGINT:
        assert status in (0, 130)
    before = len(read(broken).records)
    assert 2 <= before <= 12
    for _ in range(50):  # a killed bench's worker lets go of the last run a moment later
        gone(a_plan(recording, samples=4), broken)
        if len(read(broken).records) == 12:
            break
        time.sleep(0.1)
    assert [each.key for each in read(broken).records] == [each.key for each in read(whole).records]
    assert timeless(table(broken)) == timeless(table(whole))


def timeless(text):
    """Without the seconds that searches took."""
    return [line for line in text.splitlines() if " s" not in line and "ms" not in line]


def test_files_of_two_machines_give_one_table(tmp_path, recording):
    """The same plan on two machines, each with half of the tasks."""
    from kernelsmith.bench.ledger import merge

    halves = [tmp_path / "a", tmp_path / "b"]
    gone(a_plan(recording, only=("t0", "t1")), halves[0])
    gone(a_plan(recording, only=("t2",)), halves[1])
    merge(halves, tmp_path / "both")
    gone(a_plan(recording), tmp_path / "whole")
    whole = [record.speedup() for record in read(tmp_path / "whole").records]
    assert [record.speedup() for record in read(tmp_path / "both").records] == whole


def test_a_line_that_was_spoiled_costs_one_job(tmp_path, recording):
    plan, out = a_plan(recording), tmp_path / "out"
    gone(plan, out)
    lines = (out / RECORDS).read_text().splitlines()
    spoiled = next(i for i, line in enumerate(lines) if json.loads(line).get("name") == "t1")
    lines[spoiled] = lines[spoiled][:100]
    (out / RECORDS).write_text("\n".join(lines) + "\n")
    ended = gone(plan, out)
    assert [each.line for each in ended.results.corrupt] == [spoiled + 1]
    assert {record.entry for record in ended.results.records} == {
        "nulls/t0", "nulls/t1", "nulls/t2",
    }  # fmt: skip


def test_two_benches_do_not_write_one_folder(tmp_path, recording):
    plan, out = a_plan(recording), tmp_path / "out"
    with Ledger(out / RECORDS), pytest.raises(UsageError, match="another bench writes"):
        gone(plan, out)
