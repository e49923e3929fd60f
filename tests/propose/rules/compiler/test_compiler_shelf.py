"""Captures on disk: asked once, told often, and never believed when broken."""

import json
from dataclasses import replace

import pytest

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.compiler.call import Argument, Constant
from kernelsmith.propose.rules.compiler.capture import (
    CHANNELS_LAST,
    DEFAULT,
    Captured,
    Options,
    Request,
    Skipped,
)
from kernelsmith.propose.rules.compiler.shelf import Shelf

TASK = Task(name="small", source="class Model: ...")
REQUEST = Request(source=TASK.source, workload=Workload(arguments=(("n", 4), ("m", (1, 2)))))
FOUND = Captured(
    code="def call(args): ...", tree="{0}", outputs=2, training=True, torch="2.13.0",
    arguments=(
        Argument(name="arg0_1", path="x", shape=(2, 3), stride=(3, 1)),
        Argument(name="arg1_1", path="self.n", shape=None, stride=None, dtype="int64"),
    ),
    numbers=(("scale", "2.5"),), made_with=(("width", "4"),), assigned=(("state", "{1}"),),
    constants=(Constant(name="c", shape=(2,), stride=(1,), dtype="float32", values=(0.5, 2.0)),),
    tuned=(("kernel", (("XBLOCK", 64), ("num_warps", 4))),),
)  # fmt: skip


class Compiler:
    """Says the same to everyone, and how often it was asked."""

    def __init__(self, says=FOUND):
        self.says, self.asked = says, []

    def __call__(self, requests):
        self.asked += requests
        return [self.says] * len(requests)


def a_shelf(folder, run="run", **changes):
    return Shelf(own=folder / run, **{"shared": folder / "cache", "device": "H200", **changes})


def told(shelf, compiler, *requests, task=TASK, kind="cuda"):
    return shelf.asked(task, requests or [REQUEST], compiler, kind=kind)


@pytest.mark.parametrize("says", [FOUND, Skipped(reason="forward holds a graph break")])
def test_a_second_run_on_the_task_asks_nobody_and_hears_the_same(tmp_path, says):
    assert told(a_shelf(tmp_path), Compiler(says)) == [says]
    other = Compiler(Skipped(reason="asked again"))
    assert told(a_shelf(tmp_path, "run-2"), other) == [says]
    assert other.asked == []


def test_a_run_is_gone_on_with_from_its_own_folder_alone(tmp_path):
    told(a_shelf(tmp_path), Compiler())
    told(a_shelf(tmp_path, "second"), Compiler())  # this one had all from the cache
    for run in ("run", "second"):
        again = Compiler()
        assert told(a_shelf(tmp_path, run, shared=tmp_path / "emptied"), again) == [FOUND]
        assert again.asked == []


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "class Model: pass"}, {"options": CHANNELS_LAST},
        {"workload": Workload(arguments=(("n", 5), ("m", (1, 2))))},
        {"workload": replace(REQUEST.workload, init=(("n", 4),))},
        {"workload": replace(REQUEST.workload, dtype="bfloat16")},
        {"options": Options(measure_s=1.0)}, {"options": replace(DEFAULT, threads=2)},
    ],
    ids=["source", "options", "sizes", "init", "dtype", "measuring", "threads"],
)  # fmt: skip
def test_another_question_is_asked(tmp_path, changes):
    told(a_shelf(tmp_path), Compiler())
    other = Compiler()
    told(a_shelf(tmp_path), other, replace(REQUEST, **changes))
    assert len(other.asked) == 1


def test_another_device_kind_or_mode_is_another_question(tmp_path):
    told(a_shelf(tmp_path), Compiler())
    other = Compiler()
    told(a_shelf(tmp_path, device="H100"), other)
    told(a_shelf(tmp_path), other, kind="cpu")
    told(a_shelf(tmp_path), other, task=replace(TASK, training=True))
    assert len(other.asked) == 3
    told(a_shelf(tmp_path, device="a GPU beside it"), other, kind="cpu")
    assert len(other.asked) == 3


def test_names_that_say_nothing_about_the_kernel_do_not_matter(tmp_path):
    told(a_shelf(tmp_path), Compiler())
    other = Compiler()
    renamed = replace(REQUEST, workload=replace(REQUEST.workload, name="another name"))
    told(a_shelf(tmp_path), other, renamed, task=replace(TASK, name="copy"))
    assert other.asked == []


def test_only_what_is_missing_is_asked_and_once(tmp_path):
    told(a_shelf(tmp_path), Compiler())
    other = Compiler(Skipped(reason="no kernels"))
    new = replace(REQUEST, options=CHANNELS_LAST)
    assert told(a_shelf(tmp_path), other, new, REQUEST, new) == [other.says, FOUND, other.says]
    assert other.asked == [new]


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text[: len(text) // 2], lambda text: "", lambda text: "[]",
        lambda text: text.replace("def call", "def cull"),
        lambda text: text.replace("capture/1", "capture/0"),
        lambda text: json.dumps({**json.loads(text), "found": "{}"}),
    ],
    ids=["torn", "empty", "a list", "edited", "older", "without its parts"],
)  # fmt: skip
def test_a_broken_file_is_said_in_a_line_and_captured_again(tmp_path, caplog, broken):
    told(a_shelf(tmp_path, shared=None), Compiler())
    (path,) = (tmp_path / "run").iterdir()
    path.write_text(broken(path.read_text()))
    other = Compiler()
    assert told(a_shelf(tmp_path, shared=None), other) == [FOUND]
    assert len(other.asked) == 1
    assert [each.getMessage() for each in caplog.records] == [
        f"{path} is broken, so the compiler is asked again"
    ]
    told(a_shelf(tmp_path, shared=None), other)
    assert len(other.asked) == 1  # mended


def test_what_may_be_gone_tomorrow_stays_with_the_run(tmp_path):
    says = Skipped(reason="torch's compiler took more than 300 s")
    told(a_shelf(tmp_path), Compiler(says))
    assert told(a_shelf(tmp_path), Compiler()) == [says]
    assert told(a_shelf(tmp_path, "run-2"), Compiler()) == [FOUND]


def test_a_folder_that_cannot_be_written_costs_a_line_and_no_run(tmp_path, caplog):
    (tmp_path / "cache").write_text("a file")
    assert told(a_shelf(tmp_path), Compiler()) == [FOUND]
    assert "captures are not kept in" in caplog.text
    assert [each.suffix for each in (tmp_path / "run").iterdir()] == [".json"]
