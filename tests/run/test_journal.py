"""The journal: what was written is read again, whatever happens in between."""

import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_parts import TASK, a_config, a_run, gone

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Label, LabelName, Verdict
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import (
    Brief,
    Exemplar,
    Message,
    Outcome,
    Placement,
    Proposal,
    Role,
    Step,
    Usage,
)
from kernelsmith.errors import UsageError
from kernelsmith.run.journal import Journal, read
from kernelsmith.run.recorded import Header, Judged, Session, Stage

HEADER = Header(task=TASK, config=a_config(), run="r", started="now", versions=(("a", "1"),))

texts = st.text(max_size=200) | st.sampled_from(["x" * 300, "\ud800 lone", "é\n\u2028" * 60])
somewhat = st.floats(0.001, 1e6)
names = st.sampled_from(["a", "b", "c0ffee"])
devices = st.builds(Device, kind=names, name=texts, versions=st.just((("v", "1"),)))
ratios = st.builds(
    lambda v, a, b: Ratio(value=v, low=v / a, high=v * b),
    somewhat, st.floats(1, 2), st.floats(1, 2),
)  # fmt: skip
timings = st.builds(
    lambda ratio, us: Timing(
        workloads=(
            WorkloadTiming(
                workload="default", launches=1, speedup=ratio,
                pairs=(Pair(baseline_us=tuple(us), candidate_us=tuple(us)),),
            ),
        )
    ),
    ratios, st.lists(somewhat, min_size=1, max_size=3),
)  # fmt: skip
sources = texts.map(lambda text: text + "x")
candidates = st.builds(Candidate, backend=names, source=sources, parent=st.none() | names)
failures = st.builds(
    Evaluation, task=names, candidate=names, device=devices, message=sources, output=texts,
    verdict=st.sampled_from([v for v in Verdict if v is not Verdict.PASSED]),
    spent=st.just((("build", 0.1),)),
)  # fmt: skip
passes = st.builds(
    Evaluation, task=names, candidate=names, device=devices, timing=timings,
    verdict=st.just(Verdict.PASSED), labels=st.just((Label(name=LabelName.ROBUST),)),
)  # fmt: skip
evaluations = failures | passes
exemplars = st.builds(
    Exemplar, role=st.sampled_from(Role), candidate=candidates, evaluation=evaluations,
    score=somewhat,
)  # fmt: skip
usages = st.builds(
    Usage, input_tokens=st.none() | st.integers(0, 9), usd=st.none() | somewhat, seconds=somewhat
)
messages = st.builds(Message, role=names, content=texts)
proposals = st.builds(
    Proposal, source=texts, proposer=texts, reply=texts, usage=usages,
    messages=st.lists(messages, max_size=2).map(tuple),
) | st.builds(Proposal, source=st.none(), rejection=sources, usage=usages)  # fmt: skip
placements = st.builds(
    Placement, outcome=st.sampled_from(Outcome), island=st.integers(0, 3),
    cell=st.none() | st.lists(st.integers(0, 9)).map(tuple), score=st.none() | somewhat,
    gained=somewhat, is_best=st.booleans(),
)  # fmt: skip


@st.composite
def steps(draw, number=0):
    brief = Brief(
        number=number, task=TASK, backend="null", island=draw(st.integers(0, 3)),
        seed=draw(st.integers(0, 2**63)), parent=draw(st.none() | exemplars),
        inspirations=tuple(draw(st.lists(exemplars, max_size=2))), device=draw(st.none() | devices),
    )  # fmt: skip
    return Step(
        brief=brief, proposal=draw(proposals), placement=draw(placements),
        candidate=draw(candidates), evaluation=draw(st.none() | evaluations),
        gain=draw(st.none() | ratios), lost=draw(texts), seconds=draw(somewhat),
    )  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_was_written_is_read_again(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("j") / "journal.jsonl"
    wanted = [data.draw(steps(number)) for number in range(data.draw(st.integers(0, 3)))]
    more = data.draw(proposals)
    judged = Judged(
        stage=Stage.FIRST, candidate=data.draw(candidates), evaluation=data.draw(evaluations)
    )
    with Journal.create(path, HEADER) as journal:
        for step in wanted:
            journal.append_proposal(step.brief.number, step.proposal)
            journal.append_step(step, at_s=1.5)
        journal.append_proposal(7, more)
    with Journal.open(path) as journal:
        journal.append_judged(7, judged)
        journal.append_drained(7)
        journal.append_session(Session(config=HEADER.config, started="later"))
    found = read(path)
    assert found.header == HEADER
    assert list(found.steps) == wanted
    assert found.proposals == {**{s.brief.number: s.proposal for s in wanted}, 7: more}
    assert found.judged == {(7, Stage.FIRST): judged}
    assert found.drained == (7,)
    assert found.sessions == (Session(config=HEADER.config, started="later"),)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(step=steps())
def test_a_step_is_a_value_like_the_others(step):
    assert loads(dumps(step)) == step
    assert loads(dumps(step.brief)) == step.brief
    assert loads(dumps(step.proposal)) == step.proposal


def test_a_text_is_written_once(path):
    long = "x" * 5000
    proposal = Proposal(source=long, reply=long, messages=(Message(role="user", content=long),))
    with Journal.create(path, HEADER) as journal:
        for number in range(10):
            journal.append_proposal(number, proposal)
    with Journal.open(path) as journal:
        journal.append_proposal(10, proposal)
    assert path.read_bytes().count(long.encode()) == 1


def test_the_first_line_says_what_it_is(path):
    Journal.create(path, HEADER).close()
    header = json.loads(path.read_text().splitlines()[0])
    assert header["schema"] == "journal/1"
    assert header["seed"] == 0
    assert header["config"]["budget"]["steps"] == 40
    assert header["task"]["name"] == "add"


def test_a_torn_tail_is_dropped_wherever_it_is_torn(tmp_path):
    gone(a_run(tmp_path / "run"))
    whole = (tmp_path / "run" / "journal.jsonl").read_bytes()
    before = read(tmp_path / "run" / "journal.jsonl")
    torn = tmp_path / "torn.jsonl"
    begin = whole.index(b"\n") + 1
    for cut in range(begin, len(whole), max(1, len(whole) // 199)):
        torn.write_bytes(whole[:cut])
        found = read(torn)
        assert found.steps == before.steps[: len(found.steps)]
        Journal.open(torn).close()
        kept = torn.read_bytes()
        assert whole.startswith(kept)
        assert kept.endswith(b"\n")
        assert read(torn).steps == found.steps
    assert len(found.steps) >= 35


def test_damage_before_the_end_is_no_torn_tail(path):
    with Journal.create(path, HEADER) as journal:
        for number in range(3):
            journal.append_proposal(number, Proposal(source="x"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b'{"text": 3\n', *lines[2:]]))
    with pytest.raises(UsageError, match="line 2 is damaged"):
        read(path)


def test_there_is_one_writer(path):
    with Journal.create(path, HEADER):
        with pytest.raises(UsageError, match="is being written by another run") as caught:
            Journal.open(path)
        assert "\n" not in str(caught.value)
        read(path)  # reading neither needs the lock nor breaks it
        with pytest.raises(UsageError, match="is being written by another run"):
            Journal.open(path)
    Journal.open(path).close()


def test_a_journal_is_not_begun_twice(path):
    Journal.create(path, HEADER).close()
    with pytest.raises(UsageError, match="exists; go on with it: kernelsmith resume"):
        Journal.create(path, HEADER)
    assert [each.name for each in path.parent.iterdir()] == ["journal.jsonl"]


@pytest.mark.parametrize("text", ["", "{}\n", '{"schema": "journal/2"}\n', "no json\n"])
def test_what_is_no_journal_is_refused(path, text):
    path.write_text(text)
    with pytest.raises(UsageError, match=r"journal.jsonl"):
        read(path)


def test_it_is_read_while_it_is_written(path):
    journal = Journal.create(path, HEADER)
    done = threading.Event()

    def write():
        for number in range(300):
            journal.append_proposal(number, Proposal(source=f"{number} " * 200))
            journal.sync()
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not done.is_set():
        found = len(read(path).proposals)
        assert found >= seen
        seen = found
    writer.join()
    journal.close()
    assert len(read(path).proposals) == 300


def test_what_was_not_synced_is_not_there(path):
    journal = Journal.create(path, HEADER)
    journal.append_proposal(0, Proposal(source="x"))
    assert not journal.is_synced
    assert read(path).proposals == {}
    journal.sync()
    assert journal.is_synced
    assert len(read(path).proposals) == 1
    journal.close()
