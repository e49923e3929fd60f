"""Float64 in slices is float64; tasks that cannot be sliced are not."""

from types import SimpleNamespace

import pytest
import torch

from kernelsmith.evaluate.failure import lacks_memory
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


def test_beside_others_nobody_waits_for_slices(monkeypatch):
    case, chosen = case_of(torch.nn.GELU(), torch.randn(50, 32))
    eager = case.run(chosen, chosen.leaves, double=False)
    monkeypatch.setattr(Cramped, "crowded", True)
    with pytest.raises(torch.OutOfMemoryError) as raised:
        case.exactly(chosen, eager)
    assert lacks_memory(str(raised.value))  # so that it is checked again, alone


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
