"""torch.compile beside eager in a plain process: every timed workload, as the judge would."""

import math
import threading
import time

import torch
from benchmarks.rules_plain import interval, middle, sides

from benchmarks import rules_plain
from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.propose.rules.compiler.turns import Turn

SOURCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 2)

    def forward(self, x, rows):
        return self.linear(x)[rows]

def get_inputs(width=3):
    return [torch.randn(4, width), torch.tensor([1, 0])]

def get_init_inputs(width=3):
    return [width]
"""
TASK = Task(name="some_rows", source=SOURCE)


def test_a_workload_has_its_own_sizes_and_dtype_and_whole_numbers_stay_whole():
    wide = Workload(name="wide", arguments=(("width", 7),), init=(("width", 7),), dtype="bfloat16")
    model, compiled, sets = sides(TASK, wide, "default", "cpu")
    assert model.linear.weight.shape == (2, 7)
    assert model.linear.weight.dtype == torch.bfloat16
    assert {each[0].dtype for each in sets} == {torch.bfloat16}
    assert {each[1].dtype for each in sets} == {torch.int64}
    assert not torch.equal(sets[0][0], sets[1][0])
    assert compiled is not model


def test_a_task_counts_its_workloads_alike_and_an_outlier_does_not_move_it():
    twice, half = [2.0] * 5, [0.5, 0.5, 0.5, 0.5, 80.0]
    assert math.isclose(middle([twice, half]), 1.0)


def test_the_interval_holds_the_middle_and_grows_with_the_spread():
    calm, wild = [1.0, 1.01, 1.02, 1.03, 1.04], [0.2, 0.6, 1.02, 2.0, 5.0]
    low, high = interval([calm])
    assert low <= middle([calm]) <= high
    wider = interval([wild])
    assert wider[1] - wider[0] > 10 * (high - low)


def test_what_is_timed_beside_judges_is_timed_while_none_of_them_has_the_device(
    tmp_path, monkeypatch
):
    lock, begun, let_go = DeviceLock("a device", tmp_path), threading.Event(), []
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)

    def check() -> None:
        with lock.shared() as share:
            begun.set()
            until = time.monotonic() + 20
            while not share.is_wanted and time.monotonic() < until:
                time.sleep(0.01)
            let_go.append(time.monotonic())
            share.step_aside()

    judge = threading.Thread(target=check)
    judge.start()
    begun.wait(5)
    timed = []
    own = rules_plain.sampled

    def sampled(*args):
        timed.append(time.monotonic())
        return own(*args)

    monkeypatch.setattr(rules_plain, "sampled", sampled)
    turn = Turn(str(lock.path))
    found = rules_plain.measured(TASK, Workload(name="only"), "default", "cpu", turn)
    judge.join(5)
    assert not judge.is_alive()
    assert len(found.pairs) > 5
    assert let_go
    assert min(timed) >= let_go[0]
    with lock.exclusive():
        pass  # nobody has it any more
