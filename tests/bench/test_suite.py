"""How a suite is asked for, and what is said when it is not there."""

import pytest

from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError


def an_entry(**changes) -> Entry:
    usual = {"id": "suite/one", "task": Task(name="one", source="")}
    return Entry(**(usual | changes))


def test_an_unknown_suite_is_answered_with_those_that_are_known():
    with pytest.raises(UsageError, match=r"no suite 'kernelbnech'.*kernelbench:PATH") as error:
        open_suite("kernelbnech:/tmp")
    for name in ("aten", "builtin", "flashinfer:PATH", "table:FILE", "tritonbench-g:PATH"):
        assert name in str(error.value)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("kernelbench", "ScalingIntelligence/KernelBench"),
        ("kernelbench-x", "BonnieW05/KernelBenchX"),
        ("tritonbench-g", "thunlp/TritonBench"),
        ("tritonbench-t", "thunlp/TritonBench"),
        ("robust-kbench", "SakanaAI/robust-kbench"),
        ("flashinfer", "flashinfer-ai/flashinfer-trace"),
        ("multikernelbench", "wzzll123/MultiKernelBench"),
    ],
)
def test_a_suite_that_is_not_there_says_how_to_get_it(name, where, tmp_path):
    with pytest.raises(UsageError, match=f"{name}:PATH.*git clone.*{where}"):
        open_suite(name)
    with pytest.raises(UsageError, match=f"there is no .*git clone.*{where}"):
        open_suite(f"{name}:{tmp_path / 'nowhere'}")
    with pytest.raises(UsageError, match=f"git clone.*{where}"):
        open_suite(f"{name}:{tmp_path}")


def test_a_suite_without_a_place_takes_none():
    with pytest.raises(UsageError, match="takes no path"):
        open_suite("aten:/tmp")


def test_what_is_absent_has_a_reason():
    with pytest.raises(ValueError, match="for a reason"):
        Absent(id="suite/one", reason="")


@pytest.mark.parametrize("bad", ["", " a", "a b"])
def test_an_id_is_one_word(bad):
    with pytest.raises(ValueError, match="one word"):
        an_entry(id=bad)


def test_what_is_known_against_a_task_has_two_degrees():
    assert an_entry(note="degenerate: zeros pass").is_degenerate
    assert an_entry(note="degenerate: zeros pass").is_suspect
    assert an_entry(note="suspect: zeros pass within 1e-2").is_suspect
    assert not an_entry(note="suspect: zeros pass within 1e-2").is_degenerate
    assert not an_entry(note="shapes of BERT").is_suspect


def test_the_built_in_suite_is_there_with_families_and_difficulties():
    entries = list(open_suite("builtin").entries())
    assert all(isinstance(each, Entry) for each in entries)
    assert len({each.id for each in entries}) == len(entries) >= 60
    assert len({each.family for each in entries}) >= 20
    assert {each.level for each in entries} == {f"difficulty {n}" for n in (1, 2, 3)}
