"""Float64 in slices is float64; tasks that cannot be sliced are not."""

from types import SimpleNamespace

import pytest
import torch

from kernelsmith.evaluate.failure import lacks_memory
from kernelsmith.evaluate.worker.cuda.footprint import _Live
from kernelsmith.evaluate.worker.cuda.reference import DeviceReference
from kernelsmith.evaluate.worker.cuda.slices import DeviceCase
from kernelsmith.evaluate.worker.inputs import InputSet


class Cramped(DeviceCase):
    """As on a device whose memory is spent."""

    def free_bytes(self):
        return 0


def case_of(model, *leaves):
    chosen = InputSet([{"t": i} for i in range(len(leaves))], list(leaves), keywords=False)
    return Cramped(model, None, None, None, None), chosen


def test_slices_give_what_the_whole_gives():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.GELU())
    case, chosen = case_of(model, torch.randn(50, 32))
    eager = case.run(chosen, chosen.leaves, double=False)
    found = case.sliced(chosen, eager, parts=7)
    assert found is not None
    with torch.no_grad():
        exact = model.double()(chosen.leaves[0].double())
    assert found.leaves[0].dtype is torch.float64
    assert torch.allclose(found.leaves[0], exact, rtol=1e-14, atol=1e-15)


class Centred(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(dim=0)


def test_a_task_that_mixes_its_batch_is_not_sliced_and_still_exact():
    case, chosen = case_of(Centred(), torch.randn(64, 8))
    eager = case.run(chosen, chosen.leaves, double=False)
    assert case.sliced(chosen, eager, parts=8) is None
    found, is_exact = case.exactly(chosen, eager)
    assert is_exact
    wanted = chosen.leaves[0].double()
    assert torch.allclose(found.leaves[0], wanted - wanted.mean(dim=0), rtol=1e-12, atol=1e-12)


def test_beside_others_slices_stay_on_the_device_and_nobody_waits_for_the_host(monkeypatch):
    monkeypatch.setattr(Cramped, "crowded", True)
    monkeypatch.setattr(Cramped, "on_the_host", None)  # calling it would fail
    case, chosen = case_of(torch.nn.GELU(), torch.randn(50, 32))
    eager = case.run(chosen, chosen.leaves, double=False)
    found, is_exact = case.exactly(chosen, eager)
    assert is_exact
    assert found.leaves[0].device == eager.leaves[0].device
    wanted = torch.nn.functional.gelu(chosen.leaves[0].double())
    assert torch.allclose(found.leaves[0], wanted, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("rows", [64, 8])
def test_beside_others_what_cannot_be_sliced_is_judged_again_alone(monkeypatch, rows):
    """A product of square matrices cannot be cut at all; means over rows are other ones."""
    monkeypatch.setattr(Cramped, "crowded", True)
    case, chosen = case_of(Centred(), torch.randn(rows, 8))
    if rows == 8:
        case, chosen = case_of(None, torch.randn(8, 8), torch.randn(8, 8))
        case.function = torch.matmul
    eager = case.run(chosen, chosen.leaves, double=False)
    with pytest.raises(torch.OutOfMemoryError) as raised:
        case.exactly(chosen, eager)
    assert lacks_memory(str(raised.value))


class Single(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x.float())


def test_slices_of_what_insists_on_its_own_precision_are_not_called_exact():
    case, chosen = case_of(Single(), torch.randn(50, 32))
    eager = case.run(chosen, chosen.leaves, double=False)
    assert case.sliced(chosen, eager, parts=7) is None


class Wordy(torch.nn.Module):
    """As cuDNN where it finds no memory for any of its algorithms."""

    def forward(self, x):
        if x.dtype is torch.float64:
            raise RuntimeError("GET was unable to find an engine to execute this computation")
        return 2 * x


@pytest.mark.parametrize("crowded", [True, False])
def test_a_library_without_memory_is_no_reference_without_float64(monkeypatch, crowded):
    chosen = case_of(Wordy(), torch.randn(4, 8))[1]
    case = DeviceCase(Wordy(), None, None, None, None)
    monkeypatch.setattr(DeviceCase, "free_bytes", lambda self: 1 << 40)
    monkeypatch.setattr(DeviceCase, "crowded", crowded)
    eager = case.run(chosen, chosen.leaves, double=False)
    if not crowded:
        assert not case.exactly(chosen, eager)[1]
        return
    with pytest.raises(torch.OutOfMemoryError) as raised:
        case.exactly(chosen, eager)
    assert lacks_memory(str(raised.value))


def test_whoever_times_beside_others_does_not_keep_them_waiting_for_slices_either(monkeypatch):
    """The limit on its memory is gone then; what others hold is not."""
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda share: None)
    reference = DeviceReference.__new__(DeviceReference)
    reference._total_bytes = 1 << 30
    reference._drawn = reference._answered = SimpleNamespace(most=0)
    reference._forget = lambda: None
    monkeypatch.setattr(DeviceCase, "crowded", False)
    for share in (0.25, 1.0):
        reference.limit({"share": share, "kept": 0.1}, [])
        assert reference.case.crowded
    reference.rest({}, [])
    assert not reference.case.crowded  # the next judgement may be alone


@pytest.mark.parametrize("crowded", [True, False])
def test_questions_that_need_no_answer_are_asked_without_any_at_hand(monkeypatch, crowded):
    monkeypatch.setattr(DeviceCase, "crowded", crowded)
    reference = DeviceReference.__new__(DeviceReference)
    reference._case, chosen = case_of(None, torch.rand(8, 4))
    reference._case.function = torch.sin
    held = []
    reference._let_go = lambda: held.append("let go")
    reference._set = lambda which: chosen
    assert reference.repeat({"id": 1}, []) == {"differs": False}
    assert reference.examine({"ids": [1, 2]}, [])["reasons"]  # the same set twice
    assert len(held) == (2 if crowded else 0)


def test_a_result_without_the_batch_is_not_sliced():
    case, chosen = case_of(torch.nn.Flatten(0), torch.randn(4, 8))
    eager = case.run(chosen, chosen.leaves, double=False)
    assert case.sliced(chosen, eager, parts=2) is None


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x.mul_(0.5)


def test_a_task_that_writes_over_its_inputs_is_not_sliced():
    case, chosen = case_of(Scaled(), torch.randn(16, 8))
    eager = case.run(chosen, chosen.leaves, double=False)
    assert case.sliced(chosen, eager, parts=2) is None


def test_a_shared_input_stays_whole_in_every_slice():
    case, chosen = case_of(None, torch.randn(12, 5), torch.randn(5, 3))
    case.function = torch.matmul
    eager = case.run(chosen, chosen.leaves, double=False)
    found = case.sliced(chosen, eager, parts=4)
    assert found is not None
    exact = chosen.leaves[0].double() @ chosen.leaves[1].double()
    assert torch.allclose(found.leaves[0], exact, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("kind", "most"), [(DeviceCase, 6.0), (Cramped, 5.2)])
def test_answers_hold_no_copy_that_nobody_needs(monkeypatch, kind, most):
    """Input, eager output, and both in float64; slices do without most of the input's."""
    monkeypatch.setattr(DeviceCase, "free_bytes", lambda self: 1 << 40)
    monkeypatch.setattr(Cramped, "crowded", True)
    with _Live() as live:
        chosen = InputSet([{"t": 0}], [torch.rand(64, 10_000)], keywords=False)
        live.forget_peak()
        kind(None, torch.sigmoid, None, None, None).answer(chosen, nudges=0)
    assert live.peak <= most * chosen.leaves[0].nbytes
