"""Whatever breaks, the verdict is right or the evaluation is judged again, and nothing stays."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import StopRule

QUICK = Settings(
    stop=StopRule(target_width=1.0, min_pairs=1, max_pairs=1, min_samples=3),
    sample_us=1000.0,
    max_launches=8,
    warmups=1,
    robust=False,
    timeout_s=3.0,
    static=False,  # the sandbox and the judge have to cope, not the source reader
)

TASK = Task(
    name="double",
    library=Library.ANY,
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(64, 64)]
""",
)

HONEST = """
import torch, time
from kernelsmith.kernels import cpp
lib = cpp('''
#include <unistd.h>
#include <vector>
extern "C" {
void twice(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 2; }
void crash() { *(volatile int*)8 = 1; }
void hang() { for (;;) { asm volatile(""); } }
int64_t forks() {
  int64_t made = 0;
  for (int i = 0; i < 1000; ++i) { int p = fork(); if (p == 0) for (;;) {} made += p > 0; }
  return made;
}
void eat() {
  std::vector<char*> all;
  for (;;) {
    char* p = new char[1 << 26];
    for (long i = 0; i < 1 << 26; i += 1 << 16) p[i] = 1;
    all.push_back(p);
  }
}
}
''')
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.twice(x, y, x.numel())
        # HERE
        return y
"""


def with_fork(line):
    """The static guard refuses the word; here the sandbox has to."""
    source = HONEST.replace("fork();", "(int)syscall(57);").replace("# HERE", line)
    return Candidate(
        backend="cpu", source=source.replace("<unistd.h>", "<unistd.h>\n#include <sys/syscall.h>")
    )


PLAIN = Candidate(backend="cpu", source=HONEST.replace("fork()", "-1"))


def broken(line):
    return Candidate(backend="cpu", source=PLAIN.source.replace("# HERE", line))


@pytest.fixture(scope="module")
def evaluator():
    with LocalEvaluator(CpuBackend(memory_bytes=1 << 30), QUICK) as local:
        yield local


@pytest.fixture(autouse=True)
def _the_next_evaluation_is_right(evaluator):
    before = children(os.getpid())
    yield
    found = evaluator.judge(TASK, PLAIN)
    assert found.verdict is Verdict.PASSED, found.message
    # one zygote and one reference stay for the next candidate; nothing of this one does
    after = [pid for pid in children(os.getpid()) if pid not in before]
    assert len(after) <= 2, after


def children(pid):
    """Every living descendant of a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found, grown = {pid}, True
    while grown:
        new = {child for child, parent in parents.items() if parent in found} - found
        grown = bool(new)
        found |= new
    return sorted(found - {pid})


@pytest.mark.parametrize(
    ("line", "verdict", "words"),
    [
        ("lib.crash()", Verdict.CRASHED, "SIGSEGV"),
        ("lib.hang()", Verdict.TIMED_OUT, "more than 3 s"),
        ("lib.eat()", Verdict.CRASHED, ""),
        ("torch.empty(1 << 34)", Verdict.CRASHED, "memory"),
        ("raise SystemExit(0)", Verdict.CRASHED, "SystemExit"),
        ("__import__('os')._exit(0)", Verdict.CRASHED, "exit"),
        ("print('x' * (1 << 30))", Verdict.CRASHED, ""),
        ("open('/tmp/fill', 'wb').write(bytes(1 << 30))", Verdict.CRASHED, ""),
        ("time.sleep(60)", Verdict.TIMED_OUT, "more than 3 s"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_broken_candidate_gets_the_right_verdict(evaluator, line, verdict, words):
    found = evaluator.judge(TASK, broken(line))
    assert found.verdict is verdict, found.message
    assert words in found.message


def test_a_fork_bomb_makes_no_process(evaluator):
    found = evaluator.judge(TASK, with_fork("assert lib.forks() == 0, 'forked'"))
    assert found.verdict is Verdict.PASSED, found.message


def _kill_while_judging(evaluator, choose, slow):
    """Judge in a thread, and kill what ``choose`` picks among the zygote's children."""
    result = []
    thread = threading.Thread(target=lambda: result.append(evaluator.judge(TASK, slow)))
    thread.start()
    deadline = time.monotonic() + 20
    victim = None
    while victim is None and time.monotonic() < deadline:
        time.sleep(0.02)
        victim = choose()
    assert victim is not None, "nothing to kill appeared"
    os.kill(victim, signal.SIGKILL)
    thread.join(60)
    assert result, "the judge never came back"
    return result[0]


SLOW = broken("time.sleep(0.02)")


def test_a_killed_candidate_is_judged_again(evaluator):
    evaluator.judge(TASK, PLAIN)
    zygote = evaluator.backend.zygote.pid
    known = set(children(zygote))
    found = _kill_while_judging(
        evaluator, lambda: next(iter(set(children(zygote)) - known), None), SLOW
    )
    assert found.verdict is Verdict.PASSED, found.message


def test_a_killed_zygote_is_replaced(evaluator):
    evaluator.judge(TASK, PLAIN)
    zygote = evaluator.backend.zygote.pid
    known = set(children(zygote))
    found = _kill_while_judging(
        evaluator, lambda: zygote if set(children(zygote)) - known else None, SLOW
    )
    assert found.verdict is Verdict.PASSED, found.message
    assert evaluator.backend.zygote.pid != zygote


def test_a_killed_reference_is_replaced(evaluator):
    evaluator.judge(TASK, PLAIN)
    zygote = evaluator.backend.zygote.pid
    (reference,) = children(zygote)
    found = _kill_while_judging(
        evaluator, lambda: reference if len(children(zygote)) > 1 else None, SLOW
    )
    assert found.verdict is Verdict.PASSED, found.message


def test_a_candidate_that_is_killed_every_time_has_crashed(evaluator):
    # The kernel's out-of-memory killer leaves no other trace than SIGKILL.
    evaluator.judge(TASK, PLAIN)
    zygote, stop = evaluator.backend.zygote, threading.Event()

    def killer():
        while not stop.is_set():
            for pid in children(zygote.pid):
                if runs_built_code(pid):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        found = evaluator.judge(TASK, broken("time.sleep(0.3)"))
    finally:
        stop.set()
        thread.join()
    assert found.verdict is Verdict.CRASHED
    assert "killed by the system twice" in found.message


def runs_built_code(pid):
    """Whether it is a candidate's process: only these map what the judge built for them."""
    try:
        return "/memfd:kernel" in Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
