"""Kernels compiled ahead, without a device, are those that a launch on one looks for."""

from collections import OrderedDict
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.cuda import rehearsal
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.lane import Settled, recall, remember
from kernelsmith.evaluate.cuda.rehearsal import Rehearsals
from kernelsmith.evaluate.nvcc.backend import CudaCppBackend
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.propose.rules.templates import template_for

pytest.importorskip("triton")

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
HOPPER = {"name": "NVIDIA H200", "major": 9, "minor": 0, "multi_processor_count": 132}
LIMITS = Limits(memory_bytes=None, scratch_bytes=1 << 30, threads=1024, open_files=4096)
TASK = Task(
    name="scaled",
    source="""
import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        return x * self.weight
def get_inputs(rows):
    return [torch.randn(rows, 67)]
def get_init_inputs():
    return [67]
""",
    workloads=(
        Workload(name="held", arguments=(("rows", 7),), held_out=True),
        Workload(name="many", arguments=(("rows", 64),), dtype="float16"),
    ),
)
SOURCE = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, weight, y, count, width, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count) * tl.load(weight + at % width)
    tl.store(y + at, value, mask=at < count)

@triton.jit
def shift(y, count, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(y + at, mask=at < count) + by, mask=at < count)

class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        y = torch.empty_like(x)
        scale[(1,)](x, self.weight, y, x.numel(), x.shape[1], BLOCK=256, num_warps=2)
        BETWEEN
        rest = y.view(-1)[1:]  # no multiple of 16 bytes
        shift[(1,)](rest, rest.numel(), 0.5, BLOCK=256)
        return y
"""
PLAIN = SOURCE.replace("BETWEEN", "pass")


@pytest.fixture(scope="module")
def rehearsals():
    opened = Rehearsals(lambda: {}, list, LIMITS)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def compiled_anew():
    """Launches on tensors with memory, after files were taken over: kernels that these lacked."""
    preload = ("torch", "triton", f"{rehearsal._WORKER}.warm", "rehearsal_entries")
    with Zygote(preload=preload, search_path=[HERE]) as zygote:

        def ask(source: str, files: dict[str, object], task: Task = TASK) -> list[str]:
            asked = {
                "source": source, "task": task.source, "files": files,
                "workloads": [rehearsal._described(each) for each in task.workloads],
            }  # fmt: skip
            entry = "rehearsal_entries:launch"
            with zygote.spawn(entry=entry, profile=Profile.BUILD, limits=LIMITS) as child:
                return child.call(asked, timeout_s=60.0)["anew"]

        yield ask


def rehearsed(rehearsals: Rehearsals, source: str, task: Task = TASK) -> dict[str, object]:
    candidate = Candidate(backend="triton", source=source)
    return rehearsals.compiled(task, candidate, HOPPER, timeout_s=60.0)


def kernels(files: dict[str, object]) -> set[str]:
    return {name.partition("/")[0] for name in files if name.endswith(".cubin")}


def names(files: dict[str, object]) -> set[str]:
    return {Path(name).stem for name in files if name.endswith(".cubin")}


def test_launches_find_what_was_compiled_ahead(rehearsals, compiled_anew):
    files = rehearsed(rehearsals, PLAIN)
    assert compiled_anew(PLAIN, files) == []
    assert compiled_anew(PLAIN, {}) == ["scale", "shift"] * 2, "the workloads differ in type"


def test_inputs_of_one_row_are_compiled_ahead_too(rehearsals):
    """They are what the judge tries after the workloads: a size of 1 is a kernel of its own."""
    assert len(kernels(rehearsed(rehearsals, PLAIN))) > 4


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_kernels_of_the_rules_are_compiled_ahead(rehearsals, compiled_anew, name):
    task = load_task(ROOT / "tasks" / f"{name}.py")
    template = template_for(task, "triton")
    source = template.source(template.space.seed(0, 1))
    files = rehearsed(rehearsals, source, task)
    assert kernels(files)
    assert compiled_anew(source, files, task) == []


def test_what_was_compiled_before_a_failure_is_kept(rehearsals):
    source = SOURCE.replace("BETWEEN", "raise ValueError('half-way')")
    assert names(rehearsed(rehearsals, source)) == {"scale"}


def test_nothing_is_compiled_of_a_candidate_that_asks_for_values(rehearsals):
    source = PLAIN.replace("y = torch.empty_like(x)", "y = x if x.sum().item() > 0 else -x")
    assert names(rehearsed(rehearsals, source)) == set()


@pytest.mark.parametrize(
    ("asked", "compiled"),
    [
        ("assert torch.cuda.get_device_properties(0).multi_processor_count == 132", True),
        ("assert triton.runtime.driver.active.get_current_target().arch == 90", True),
        ("torch.cuda.get_device_properties(0).total_memory", False),
        ("triton.runtime.driver.active.utils.load_binary", False),
    ],
)
def test_the_device_is_known_by_what_the_judge_says_of_it(rehearsals, asked, compiled):
    found = names(rehearsed(rehearsals, SOURCE.replace("BETWEEN", asked)))
    assert found == ({"scale", "shift"} if compiled else {"scale"})


def test_what_an_autotuner_chooses_from_is_left_to_it(rehearsals):
    tuned = "@triton.autotune([triton.Config({}, num_warps=n) for n in (1, 2)], key=['count'])\n"
    source = PLAIN.replace("@triton.jit\ndef shift", f"{tuned}@triton.jit\ndef shift")
    assert names(rehearsed(rehearsals, source)) == {"scale"}


def test_a_process_that_dies_is_an_error_of_ours_and_the_next_one_is_compiled(rehearsals):
    deadly = SOURCE.replace("BETWEEN", "import os; os._exit(3)")
    with pytest.raises(SmithError):
        rehearsed(rehearsals, deadly)
    assert names(rehearsed(rehearsals, PLAIN)) == {"scale", "shift"}


def test_modules_that_convert_themselves_are_followed(rehearsals):
    source = PLAIN.replace("torch.ones(width))\n", "torch.ones(width))\n        self.double()\n")
    assert names(rehearsed(rehearsals, source)) == {"scale", "shift"}


def test_where_the_process_cannot_start_it_is_tried_once(monkeypatch):
    monkeypatch.setattr(rehearsal, "_PRELOAD", ("no_such_module",))
    opened = Rehearsals(lambda: {}, list, LIMITS)
    with pytest.raises(EvaluationLost, match="did not start"):
        rehearsed(opened, PLAIN)
    assert rehearsed(opened, PLAIN) == {}
    opened.close()


def test_a_backend_rehearses_the_second_candidate_though_no_reference_is_open(monkeypatch):
    monkeypatch.setattr(CudaBackend, "_asked_facts", lambda self: {**HOPPER})
    backend = CudaBackend()
    try:
        for source in (PLAIN + "# first", PLAIN):
            candidate = Candidate(backend="triton", source=source)
            backend.rehearse(TASK, candidate, timeout_s=60.0)
        assert list(backend._settled) == [PLAIN]
    finally:
        backend.close()


def test_a_backend_whose_kernels_are_not_tritons_rehearses_nothing(monkeypatch):
    monkeypatch.setattr(CudaBackend, "_asked_facts", lambda self: {**HOPPER})
    monkeypatch.setattr(Rehearsals, "compiled", lambda *_, **__: pytest.fail("it was"))
    backend = CudaCppBackend()
    try:
        for _ in range(3):
            backend.rehearse(TASK, Candidate(backend="cuda", source=PLAIN), timeout_s=60.0)
    finally:
        backend.close()


def test_a_backend_rehearses_once_it_knows_its_device():
    backend, candidate = CudaBackend(), Candidate(backend="triton", source=PLAIN)
    try:
        backend.rehearse(TASK, candidate, timeout_s=60.0)
        assert PLAIN not in backend._settled, "no reference was opened yet: only one is judged"
        backend._facts = {**HOPPER}
        backend.rehearse(TASK, candidate, timeout_s=60.0)
        assert backend._settled[PLAIN].seeded
        assert names(backend._settled[PLAIN].files) == {"scale", "shift"}
        backend._settled[PLAIN] = Settled(choices=["of a process"])
        backend.rehearse(TASK, candidate, timeout_s=60.0)
        assert backend._settled[PLAIN] == Settled(choices=["of a process"])
    finally:
        backend.close()


def test_what_was_rehearsed_does_not_replace_what_a_process_left():
    settled: OrderedDict[str, Settled] = OrderedDict()
    left = Settled(choices=["chosen"], files={"a": "YQ=="})
    remember(settled, "source", left)
    ahead = Settled(files={"b": "Yg=="}, seeded=True)
    remember(settled, "source", ahead, only_new=True)
    remember(settled, "other", ahead, only_new=True)
    assert recall(settled, "source") == left
    assert recall(settled, "other") == ahead
    assert recall(settled, "third") == Settled()


def test_what_is_in_use_outlives_what_many_rehearsals_leave():
    settled: OrderedDict[str, Settled] = OrderedDict()
    used = Settled(files={"a": "YQ=="})
    remember(settled, "used", used)
    for number in range(20):
        remember(settled, f"ahead {number}", Settled(seeded=True), only_new=True)
        assert recall(settled, "used") == used
    assert "ahead 0" not in settled
