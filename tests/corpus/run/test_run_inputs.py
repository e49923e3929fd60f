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
