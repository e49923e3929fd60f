"""Inputs and arguments that run by accident: better ones are taken, or it is written down."""

import re

import pytest

from kernelsmith.corpus.extract.extract import extract
from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.inputs.guesses import fewer_heads, init_guesses
from kernelsmith.corpus.run.runner import is_fixture
from kernelsmith.corpus.store import Store

SOURCE = """
import math
import torch
import torch.nn.functional as F
from torch import nn


class PatchEmbed(nn.Module):
    '''A layout that the search tries first has no batch for this convolution.'''
    def __init__(self, patch_size=4, in_channels=2, embed_dim=32):
        super().__init__()
        self.proj = nn.Conv3d(in_channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, frames2d):
        return self.proj(frames2d).flatten(2).transpose(1, 2)


class Smooth(nn.Module):
    '''Runs over one step of time as well, where it does nothing.'''
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 5, padding=2, padding_mode="replicate")

    def forward(self, x):
        return self.conv(x.transpose(1, 2)).transpose(1, 2).tanh()


class FinalLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.shift = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x, c):
        return self.norm(x) + self.shift(c).unsqueeze(1)


class SomePairs(nn.Module):
    '''Two vectors of one length, the second for the sake of an interface.'''
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x, other):
        return self.layer(x).relu()


class Clips(nn.Module):
    '''Frames of a batch of clips, one after the other.'''
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv3d(channels, channels, (3, 1, 1), padding=(1, 0, 0))

    def forward(self, frames, batch_size: int):
        clips = frames.unflatten(0, (batch_size, -1)).transpose(1, 2)
        return self.conv(clips).transpose(1, 2).flatten(0, 1)


class Pyramid(nn.Module):
    '''Halves its map six times: 32 points leave nothing of it.'''
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3 if i == 0 else 4, 4, 3, stride=2, padding=1) for i in range(6)]
        self.layers, self.last = nn.Sequential(*layers), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, image):
        return self.last(self.layers(image))


class Bias(nn.Module):
    '''A table of the first size it sees; two by two runs.'''
    def __init__(self, heads):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(heads, 1, 1))
        self.table = None

    def forward(self, x):
        side = int(math.sqrt(x.shape[-1]))
        if self.table is None:
            self.table = torch.arange(side * side).float().expand(side * side, -1)
        return x * 2.0 + self.scale * self.table


class Group(nn.Module):
    def __init__(self, groups, normalized_shape, context_dim):
        super().__init__()
        self.norm = nn.GroupNorm(groups, normalized_shape, affine=False)
        self.mlp = nn.Linear(context_dim, normalized_shape)

    def forward(self, x, context):
        context = self.mlp(context)
        for _ in x.shape[2:]:
            context = context.unsqueeze(-1)
        return self.norm(x) * (context + 1)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory, runner):
    folder = tmp_path_factory.mktemp("settle")
    (folder / "repo" / "pkg").mkdir(parents=True)
    (folder / "repo" / "pkg" / "layers.py").write_text(SOURCE)
    store = Store(folder / "corpus")
    harvest(store, [str(folder / "repo")], licences=("any",), say=lambda text: None)
    extract(store, processes=1, progress=lambda *numbers: None)
    records = [r for r in store.stage("extract") if not r.key.endswith("!file")]
    return {record.key.rpartition(":")[2]: runner.run(record) for record in records}


def shapes(record):
    assert record.kept, (record.reason, record.detail)
    return [[int(n) for n in re.findall(r"\d+", text.partition("[")[2])]
            for text in record.data["inputs"]]  # fmt: skip


def test_a_convolution_is_not_called_without_a_batch_where_it_can_have_one(found):
    assert [len(shape) for shape in shapes(found["PatchEmbed"])] == [5]


def test_an_axis_shorter_than_the_kernel_is_not_settled_on(found):
    assert shapes(found["Smooth"])[0][1] >= 16


def test_inputs_do_not_broadcast_across_the_batch_where_others_run(found):
    first, second = shapes(found["FinalLayer"])
    assert (len(first), len(second)) == (3, 2)


def test_a_side_that_a_pyramid_halves_to_nothing_is_doubled(found):
    record = found["Pyramid"]
    assert shapes(record)[0][-1] >= 64
    assert not [note for note in record.data["notes"] if "wider" in note]


def test_a_handful_of_numbers_is_not_settled_on_where_more_run(found):
    for shape in shapes(found["Bias"]):
        count = 1
        for size in shape:
            count *= size
        assert count >= 16


def test_an_input_that_does_nothing_is_named(found):
    record = found["SomePairs"]
    assert len(shapes(record)) == 2
    assert "input other does not affect the output" in record.data["notes"]
    assert "input x does not affect the output" not in record.data["notes"]


def test_a_batch_size_is_not_all_of_axis_0(found):
    text = found["Clips"].text("code").partition("def get_inputs")[2]
    assert shapes(found["Clips"])[0][0] > 1
    assert re.search(r"\), 1\]", text), text


def test_a_size_is_not_a_truth_value(found):
    shape = shapes(found["Group"])[0]
    assert "True" not in found["Group"].text("code")
    assert shape[1] == 64, "as many channels as the norm is of"


@pytest.mark.parametrize("name", ["normalized_shape", "down_channels", "residual_dim", "out_size"])
def test_no_guess_for_a_size_is_true_or_false(name):
    assert not {"True", "False"} & set(init_guesses(name))
    assert "True" in init_guesses(name, "bool")


def test_flags_keep_their_guesses():
    assert init_guesses("use_channels_last")[0] == "True"
    assert init_guesses("qkv_bias")[0] == "True"


def test_heads_are_at_least_eight_wide():
    assert init_guesses("att_heads")[0] == "4"
    assert init_guesses("d_head")[0] == "16"
    assert fewer_heads({"hidden_size": "64", "num_heads": "16"})["num_heads"] == "8"
    assert fewer_heads({"hidden_size": "48", "num_heads": "12"})["num_heads"] == "6"
    assert fewer_heads({"hidden_size": "64", "num_heads": "4"})["num_heads"] == "4"


@pytest.mark.parametrize(
    ("key", "fixture"),
    [
        ("a:a/distributed/test_utils/model.py:Dense", True),
        ("a:tests/net.py:Dense", True),
        ("a:a/testing.py:Dense", True),
        ("a:a/test_net.py:Dense", True),
        ("a:a/net.py:TestDense", True),
        ("a:a/net.py:Testosterone", False),
        ("botorch:botorch/test_functions/synthetic.py:Ackley", False),
        ("a:a/latest/net.py:Dense", False),
    ],
)
def test_what_was_written_for_tests_is_known_by_its_file_or_name(key, fixture):
    assert is_fixture(key) is fixture
