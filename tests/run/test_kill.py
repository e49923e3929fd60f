"""``kill -9`` at any point: nothing acknowledged is lost, nothing is judged twice."""

import asyncio
import os
import random
import signal
import time

import pytest
from run_parts import Counting, Writer, a_run, gone, resumed

from kernelsmith.run.canonical import canonical
from kernelsmith.run.journal import read
from kernelsmith.run.recorded import Stage
from kernelsmith.run.start import JOURNAL

POINTS = 50
SLOW = 0.006


class Noting(Counting):
    """Notes each judgement in a file that survives the process."""

    def __init__(self, path, **more):
        super().__init__(**more)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def evaluate(self, task, candidate, *, baseline=None):
        found = await super().evaluate(task, candidate, baseline=baseline)
        beside = "" if baseline is None else baseline.id
        os.write(self._fd, f"{candidate.id} {beside}\n".encode())
        return found


def run_and_be_killed(folder, notes, acknowledged, *, after_s):
    """Run in a process of its own, slowed down a little, and kill that at some point."""
    child = os.fork()
    if child == 0:
        try:
            fd = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            run = a_run(
                folder,
                proposer=Writer(delay=SLOW),
                evaluator=Noting(notes, delay=SLOW),
                confirmer=Counting(delay=SLOW),
                watch=lambda progress: os.write(fd, f"{progress.told}\n".encode()),
                concurrency=4,
            )
            asyncio.run(run.go())
        finally:
            os._exit(0)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "r"
    run = a_run(folder, proposer=Writer(delay=SLOW), evaluator=Counting(delay=SLOW))
    begun = time.monotonic()
    gone(run)
    spent = time.monotonic() - begun
    return run.search.fingerprint(), canonical(read(folder / JOURNAL)), spent


@pytest.mark.parametrize("point", range(POINTS))
def test_killed_anywhere_it_resumes_to_the_same_end(tmp_path, whole, point):
    fingerprint, steps, spent = whole
    folder, notes, acknowledged = tmp_path / "r", tmp_path / "notes", tmp_path / "acknowledged"
    after_s = random.Random(point).uniform(0.02, 1.1 * spent)
    run_and_be_killed(folder, notes, acknowledged, after_s=after_s)
    if not (folder / JOURNAL).exists():
        pytest.skip("killed before the journal began")
    left = read(folder / JOURNAL)
    assert len(left.steps) >= max(map(int, lines(acknowledged)), default=0)

    evaluator = Noting(notes)
    run = resumed(folder, proposer=Writer(), evaluator=evaluator, confirmer=Counting())
    gone(run)
    assert run.search.fingerprint() == fingerprint
    assert canonical(read(folder / JOURNAL)) == steps
    # What the journal held when the process died is not judged again, beside eager or the parent.
    held = {
        (judged.candidate.id, stage)
        for (_, stage), judged in left.judged.items()
        if stage in (Stage.FIRST, Stage.GAIN)
    }
    again = {(id, Stage.GAIN if beside else Stage.FIRST) for id, beside in evaluator.judged}
    assert not held & again
    # And whoever was judged twice had an evaluation that never reached the journal.
    twice = len(lines(notes)) - len(set(lines(notes)))
    assert twice <= len(lines(notes)) - len(evaluator.judged) - len(held)


def test_killed_again_and_again_it_still_comes_to_the_same_end(tmp_path, whole):
    fingerprint, steps, spent = whole
    folder, notes = tmp_path / "r", tmp_path / "notes"
    after_s = 0.3 * spent
    while not (folder / JOURNAL).exists():  # killed before it began, on a busy machine
        run_and_be_killed(folder, notes, tmp_path / "a", after_s=after_s)
        after_s *= 2
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                evaluator = Counting(delay=SLOW)
                run = resumed(folder, proposer=Writer(delay=SLOW), evaluator=evaluator)
                asyncio.run(run.go())
            finally:
                os._exit(0)
        time.sleep(random.Random(number).uniform(0.05, 0.3) * spent)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    run = resumed(folder)
    gone(run)
    assert run.search.fingerprint() == fingerprint
    assert canonical(read(folder / JOURNAL)) == steps
