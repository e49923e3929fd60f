"""What is written over outputs, so that what nobody wrote again shows."""

import torch

from kernelsmith.evaluate.worker.cuda import memory


def test_outputs_of_any_size_and_kind_are_written_over(monkeypatch):
    monkeypatch.setattr(memory, "_SMALL", 100)
    floats = [torch.rand(4), torch.rand(64), torch.rand(64, 3).half(), torch.rand(0)]
    whole = [torch.arange(4), torch.arange(4, dtype=torch.uint8)]
    strided = torch.rand(64, 4)
    memory.poison([*floats, *whole, strided[:, ::2]])
    assert all(each.isnan().all() for each in (*floats, strided[:, ::2]))
    assert not strided[:, 1::2].isnan().any()  # somebody else's
    assert whole[0].tolist() == [torch.iinfo(torch.int64).min] * 4
    assert whole[1].tolist() == [0xFF] * 4
