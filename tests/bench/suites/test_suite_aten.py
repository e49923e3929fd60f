"""PyTorch's operators: samples in words become tasks."""

import pytest

from kernelsmith.bench.suite import Entry, open_suite
from kernelsmith.bench.suites import operators
from kernelsmith.bench.suites.aten import Aten


def a_tensor(*shape, **more) -> dict:
    return {"shape": list(shape), "dtype": "float32", "low": 0.5, "high": 2.0} | more


def a_sample(*arguments, **options) -> dict:
    return {"arguments": list(arguments), "options": {k: {"is": v} for k, v in options.items()}}


def said(path, kind, *samples, integers=False) -> dict:
    return {"path": path, "kind": kind, "samples": list(samples), "integers": integers}


def played(entry: Entry) -> list:
    """Run every workload but the large ones."""
    scope: dict = {}
    exec(entry.task.source, scope)
    small = [each for each in entry.task.workloads if not each.name.startswith("gpu:")]
    drawn = [scope["get_inputs"](**dict(each.arguments)) for each in small]
    return [(inputs, scope[entry.task.entry](**inputs)) for inputs in drawn]


def made(name, found) -> Entry:
    entry = Aten()._entry(name, found)
    assert isinstance(entry, Entry)
    return entry


def test_there_are_160_operators_each_once():
    assert len(operators.NAMES) == len(set(operators.NAMES)) == 160


def test_a_unary_operator_is_timed_large_within_the_samples_range():
    entry = made("log", said("torch.log", "UnaryUfuncInfo", a_sample(a_tensor(5, 3))))
    assert (entry.id, entry.family) == ("aten/log", "elementwise")
    first, held_out = played(entry)
    assert first[0]["input"].shape == (2048, 1024)
    assert first[0]["input"].min() >= 0.5
    assert held_out[0]["input"].shape == (5, 3)
    assert [each.held_out for each in entry.task.workloads] == [False, False, True]


def test_a_sample_of_one_number_does_not_make_a_large_tensor_of_it():
    point = a_sample(a_tensor(low=1.5, high=1.5))
    found = said("torch.log", "UnaryUfuncInfo", a_sample(a_tensor(5, 3)), point)
    large, *samples = played(made("log", found))
    assert large[0]["input"].min() < 0.6
    assert large[0]["input"].max() > 1.9
    assert [tuple(inputs["input"].shape) for inputs, _ in samples] == [(5, 3)]


def test_a_reduction_is_timed_along_its_last_dimension():
    entry = made("amax", said("torch.amax", "ReductionOpInfo", a_sample(a_tensor(4, 5), dim=0)))
    assert played(entry)[0][1].shape == (2048,)


def test_samples_that_begin_with_another_argument_are_called_in_order():
    weight, rows = a_tensor(10, 4), {"shape": [3], "dtype": "int64", "values": [1, 0, 9]}
    found = said("torch.nn.functional.embedding", "OpInfo", a_sample(weight, rows))
    entry = made("nn.functional.embedding", found)
    large, sample = played(entry)
    assert large[1].shape == (2048, 256)
    assert sample[0]["arg1"].tolist() == [1, 0, 9]
    assert sample[1].shape == (3, 4)


def test_without_a_larger_call_the_largest_sample_is_timed_and_said_so():
    kernel = {"list": [{"is": 2}, {"is": 2}], "tuple": True}
    found = said(
        "torch.nn.functional.max_pool2d", "OpInfo",
        a_sample(a_tensor(1, 2, 4, 4), kernel), a_sample(a_tensor(2, 3, 8, 8), kernel),
    )  # fmt: skip
    entry = made("nn.functional.max_pool2d", found)
    assert "mostly the cost of a call" in entry.note
    assert played(entry)[0][1].shape == (2, 3, 4, 4)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "has no sample of it"),
        ({"why": "RuntimeError: x"}, "its samples fail: RuntimeError: x"),
        (said("torch.log", "UnaryUfuncInfo"), "none of its samples"),
    ],
)
def test_what_pytorch_does_not_say_is_absent(found, reason):
    assert reason in Aten()._entry("log", found).reason


@pytest.mark.slow
def test_every_operator_runs_on_every_sample_of_this_pytorch():
    entries = list(open_suite("aten").entries())
    assert len(entries) == 160
    for entry in entries:
        assert isinstance(entry, Entry), entry
        assert played(entry)
