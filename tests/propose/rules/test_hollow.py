"""Tensors that lose their contents stay what they were otherwise."""

import pytest

torch = pytest.importorskip("torch")

from kernelsmith.propose.rules.hollow import hollowed  # noqa: E402


def empty(tensor):
    made = tensor.detach().to("meta")
    return torch.nn.Parameter(made) if isinstance(tensor, torch.nn.Parameter) else made


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("table", torch.ones(2))
        self.register_buffer("nothing", None)
        self.register_buffer("_own", torch.ones(3))
        self._mask, self.cells = torch.ones(6), torch.nn.GRU(2, 2)
        self.plain, self.listed = torch.ones(4), [torch.ones(5), "word"]


def test_a_model_s_tensors_are_changed_in_their_places():
    model = hollowed(Tied(), empty)
    held = [*model.parameters(), *model.buffers(), model.plain, model.listed[0], model._mask]
    held += model.cells._flat_weights
    assert all(each.is_meta for each in held)
    assert model.listed[1] == "word"
    assert model.nothing is None
    assert set(model.state_dict()) == set(Tied().state_dict())


def test_tied_weights_stay_tied():
    model = hollowed(Tied(), empty)
    assert model.first.weight is model.second.weight
    assert isinstance(model.first.weight, torch.nn.Parameter)


def test_one_tensor_in_several_places_of_the_inputs_stays_one():
    x = torch.ones(2)
    first, (second, other), named = hollowed([x, (x, 3), {"x": x}], empty)
    assert first is second is named["x"]
    assert first.is_meta
    assert other == 3
