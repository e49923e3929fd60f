"""Which inputs a module gets where several would run."""

TONE = """
import torch
from torch import nn


class Tone(nn.Module):
    def forward(self, x):
        return x.clamp(0, 1).pow(2.2)


class RgbShift(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.zeros(3, 1, 1))

    def forward(self, pixels):
        return pixels + self.by + 1
"""
TEST = """
import torch
from pkg.tone import Tone


def test_tone():
    assert Tone()(torch.rand(2, 3, 4, 5)).shape == (2, 3, 4, 5)
"""


def inputs(repository, runner, name):
    repository.write(tone=TONE, test_tone=TEST)
    record = runner.run(repository.extract()[name])
    assert record.kept, (record.reason, record.detail)
    return record


def test_where_authors_call_it_on_images_it_gets_images_of_a_size_worth_timing(repository, runner):
    found = inputs(repository, runner, "Tone")
    shape = found.data["inputs"][0].partition("[")[2].rstrip("]").split(", ")
    assert len(shape) == 4
    assert int(shape[-1]) >= 16
    assert found.text("agreement") == "rank", "what was found before is what is counted"


def test_a_name_that_speaks_of_images_gets_a_batch_of_them(repository, runner):
    found = inputs(repository, runner, "RgbShift")
    assert found.data["inputs"][0].count(",") == 3


ODD = """
import torch
from torch import nn


class Numbered(nn.Module):
    def __init__(self, layer_idx, head_dim):
        super().__init__()
        self.first = nn.Linear(head_dim, 96)
        self.second = nn.Linear(128, head_dim)

    def forward(self, x):
        return self.second(self.first(x))


class Resized(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = (64, 64)

    def forward(self, x, new_size):
        wanted = tuple(new_size)
        if self.size == wanted:
            return x
        raise ValueError("another size")
"""


def test_a_layer_number_of_zero_is_no_width_to_make_a_multiple_of(repository, runner):
    repository.write(odd=ODD)
    found = runner.run(repository.extract()["Numbered"])
    assert found.reason == "no inputs found"
    assert "cannot be multiplied" in found.detail


def test_tuples_that_hold_tensors_are_compared_by_nobody(repository, runner):
    repository.write(odd=ODD)
    assert runner.run(repository.extract()["Resized"]).reason != "fails in an unforeseen way"
