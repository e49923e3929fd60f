"""What is compiled ahead of judging, and that the judge's processes then compile nothing."""

import base64
import fcntl
import json
import shutil
from collections import OrderedDict
from dataclasses import replace

import pytest
from benchmarks.rules_seed import files_in, run_alone, seeded
from benchmarks.rules_tasks import Chosen

from kernelsmith.api import load_task
from kernelsmith.bench.compiled import Compilers, compiling
from kernelsmith.bench.compiling import CompilingCuda
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library
from kernelsmith.evaluate.cuda.lane import Settled, remember
from kernelsmith.evaluate.sandbox.channel import FILES_BYTES, MAX_BYTES, encode
from kernelsmith.evaluate.settings import effort
from kernelsmith.propose.rules.compiler.turns import Turn

TASK = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(96))

    def forward(self, x):
        return torch.tanh(x * self.weight) * 2


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
"""
CHECKED = """

class Checked(ModelNew):
    def forward(self, x):
        from torch._dynamo.utils import counters

        found = super().forward(x)
        seen = dict(counters["inductor"])
        assert seen.get("fxgraph_cache_hit") and not seen.get("fxgraph_cache_miss"), f"saw {seen}"
        return found


ModelNew = Checked
"""


@pytest.mark.slow
def test_a_process_of_the_judge_that_begins_with_the_files_compiles_nothing(tmp_path, monkeypatch):
    compiler = shutil.which("g++")
    assert compiler is not None
    monkeypatch.setenv("CXX", compiler)  # it names graphs in the caches, and the judge has it not
    path = tmp_path / "tanh.py"
    path.write_text(TASK)
    chosen = Chosen(key="tanh", path=path)
    files, done = seeded(chosen, "default", backend="cpu", lock=None, limit_s=120.0)
    assert not done.error
    task = replace(load_task(path), library=Library.ANY)
    source = compiling(task, "compile") + CHECKED
    compilers = Compilers("cpu", effort("quick"))
    try:
        candidate = Candidate(backend="cpu", source=source)
        compilers.seed(source, json.loads(files))
        found = compilers._entrants.judge(task, candidate)
        assert found.verdict is Verdict.PASSED, found.message
        assert compilers._backend.compiled_anew(source) is False
        other = source + "# never seen\n"
        without = compilers._entrants.judge(task, Candidate(backend="cpu", source=other))
        assert without.verdict is Verdict.CRASHED
        assert "fxgraph_cache_miss" in without.message
    finally:
        compilers.close()


def test_a_device_hands_seeded_files_to_the_next_process_of_the_source():
    backend = CompilingCuda()
    try:
        for number in range(12):
            backend.seed(f"source {number}", {"inductor/a.py": "YQ=="})
        assert backend._settled["source 11"].files == {"inductor/a.py": "YQ=="}
        assert len(backend._settled) == 8
    finally:
        backend.close()


def test_a_graph_that_was_not_among_the_files_was_compiled_anew():
    backend = CompilingCuda()
    seeds = {"inductor/fxgraph/ab/x": "", "inductor/ab/x.py": ""}
    try:
        backend.seed("source", seeds)
        assert backend.compiled_anew("source") is None  # nobody has said
        remember(backend._settled, "source", Settled(files=dict(seeds) | {"kernel.cubin": ""}))
        assert backend.compiled_anew("source") is False
        more = dict(seeds) | {"inductor/fxgraph/cd/y": ""}
        remember(backend._settled, "source", Settled(files=more))
        assert backend.compiled_anew("source") is True
        assert backend.compiled_anew("never seeded") is None
    finally:
        backend.close()


def test_what_was_compiled_runs_only_while_the_turn_is_held(tmp_path, monkeypatch):
    from torch._inductor.output_code import CompiledFxGraph

    lock = tmp_path / "lock"
    seen = []

    def own(self, inputs):
        with lock.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        seen.append(inputs)
        return inputs

    monkeypatch.setattr(CompiledFxGraph, "__call__", own)
    run_alone("cpu", Turn(str(lock)))
    assert CompiledFxGraph.__call__(None, [1]) == [1]
    assert seen == [[1]]
    with lock.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_files_go_by_relative_name_and_too_many_are_none(tmp_path):
    (tmp_path / "inductor" / "ab").mkdir(parents=True)
    (tmp_path / "inductor" / "ab" / "x.py").write_bytes(b"pass")
    (tmp_path / "inductor" / "ab" / "x.lock").write_bytes(b"")
    (tmp_path / "k.ttir").write_bytes(b"not read again")
    assert files_in(tmp_path) == {"inductor/ab/x.py": base64.b64encode(b"pass").decode()}
    with (tmp_path / "large.cubin").open("wb") as file:
        file.truncate(FILES_BYTES)
    assert files_in(tmp_path) == {}


def test_files_that_no_message_can_carry_are_not_handed_on():
    settled = OrderedDict()
    carried = "x" * (FILES_BYTES // 3 * 4)
    remember(settled, "a", Settled(files={"k": carried}, seeded=True))
    assert settled["a"].files
    assert len(encode({"cache": settled["a"].files})) < MAX_BYTES
    remember(settled, "b", Settled(files={"k": carried, "l": "more"}, seeded=True))
    assert settled["b"] == Settled(files={})
