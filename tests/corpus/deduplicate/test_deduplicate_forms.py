from kernelsmith.corpus.deduplicate import forms
from kernelsmith.corpus.deduplicate.deduplicate import contaminated, group, shape_of

MLP = """\
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, {dim}, hidden):
        super().__init__()
        self.up = nn.Linear({dim}, hidden)
        self.down = nn.Linear(hidden, {dim})
        self.norm = nn.LayerNorm({dim})

    def forward(self, {x}):
        y = self.down(torch.relu(self.up(self.norm({x}))))
        return y + {x}{extra}

class Model({name}):
    '''from somewhere'''

def get_inputs():
    return [torch.rand({size})]
"""
CONV = """\
from torch import nn

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3)

    def forward(self, image):
        return self.conv(image).sigmoid().mean(dim=(2, 3))
"""


def text(name="Mlp", dim="dim", x="x", extra="", size=4):
    return MLP.format(name=name, dim=dim, x=x, extra=extra, size=size)


def shapes(*texts):
    return [shape_of(str(i), each) for i, each in enumerate(texts)]


def joined(*texts):
    found = group(shapes(*texts), embedding="tfidf", near=0.8, graphs=True)
    return found.find(0) == found.find(1), found.why.get(1)


def test_recipes_and_docstrings_do_not_make_a_difference():
    assert joined(text(size=4), text(size=8), CONV) == (True, "same text")


def test_names_do_not_make_a_difference():
    same, why = joined(text(), text(name="Other", dim="width", x="hidden_states"), CONV)
    assert same
    assert why == "same but for names"


def test_a_small_change_is_a_near_copy():
    assert joined(text(), text(extra=" * 1"), CONV)[0]


def test_different_modules_stay_apart():
    assert not joined(text(), CONV, text(extra=" "))[0]


def test_equal_graphs_are_one_module_however_they_are_written():
    one, other = shapes(text(), CONV)
    one.graph = other.graph = "g"
    one.ops = other.ops = 9
    found = group([one, other], embedding="tfidf", near=0.8, graphs=True)
    assert found.find(0) == found.find(1)


def test_graphs_of_two_operators_say_too_little():
    one, other = shapes(text(), CONV)
    one.graph = other.graph = "g"
    one.ops = other.ops = 2
    found = group([one, other], embedding="tfidf", near=0.8, graphs=True)
    assert found.find(0) != found.find(1)


def test_a_benchmarks_task_is_found_under_other_names():
    (ours,), known = shapes(text(name="Mine", x="inp")), shapes(text(), CONV)
    assert contaminated([ours], known) == {"0": "same but for names: 0"}
    (other,) = shapes(CONV.replace("sigmoid", "tanh").replace("Conv2d", "Conv1d"))
    assert contaminated([other], shapes(text())) == {}


def test_minhash_estimates_the_share_of_equal_shingles():
    words = [str(n) for n in range(1500)]
    one, other = forms.shingles(words[:1000]), forms.shingles(words[500:])
    found = forms.likeness(forms.signature(one), forms.signature(other))
    assert abs(found - 1 / 3) < 0.15
