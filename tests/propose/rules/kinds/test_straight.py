"""Parts of ``forward`` that may be cut out, and what must not change before them."""

from dataclasses import replace

import pytest
from rule_tasks import a_task

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.straight import places
from kernelsmith.propose.rules.source import read_module

LAYERS = """self.norm = nn.LayerNorm(67)
self.act = nn.ReLU()
self.own = nn.ReLU(inplace=True)
self.by_place = nn.LeakyReLU(0.2, True)
self.drop = nn.Dropout(0.5)
self.batch = nn.Sequential(nn.Linear(67, 67), nn.BatchNorm1d(67))
self.helper = Helper()
self.tidy = Tidy()
self.body = nn.Sequential(nn.Linear(67, 67), nn.ReLU(inplace=True))
self.head = nn.Sequential(nn.Identity(), nn.SiLU(inplace=True))"""


OTHERS = """
def stirred(x):
    x += 1
    return x


def plainly(x):
    return x + 1


class Helper(nn.Module):
    def forward(self, x):
        self.count = self.count + 1
        return x


class Tidy(nn.Module):
    def forward(self, x):
        y = x * 2
        y += 1
        return plainly(y)
"""


def the_place(forward, *, training=False):
    task = replace(a_task(forward, init=LAYERS), training=training)
    task = replace(task, source=task.source + OTHERS)
    return next(each for each in places(read_module(task)) if each.name == "Model")


@pytest.mark.parametrize(
    "forward",
    [
        "y = x.contiguous()\ny += 1",
        "x += 1",
        "y = self.norm(x)\nr = y\ny += 1",
        "y = x + 1\nr = y\ny += 1",
        "y = x + 1\nr = y.view(-1)\ny += 1",
        "y = x + 1\ny += y.sum()",
        "for i in range(3):\n    x += i",
        "x.add_(1)",
        "x[0] = 1",
        "self.seen = x",
        "y = F.silu(x, inplace=True)",
        "torch.add(x, 1, out=x)",
        "y = self.own(x)",
        "y = self.head(x)",
        "y = self.by_place(x)",
        "y = F.leaky_relu(x, 0.2, True)",
        "y = F.elu(x, 1.0, True)",
        "y = F.relu_(x)",
        "y = F.dropout(x, 0.5, False, True)",
        "y = F.dropout(x)",
        "y = x + torch.rand(1)",
        "y = x.bernoulli()",
        "self.seen.append(x)",
        "x.cache.update(a=x)",
        "y = self.helper(x)",
        "y = stirred(x)",
        "y = somewhere(x)",
        "y = self.other(x)",
    ],
)
def test_what_may_change_a_tensor_of_somebody_else_is_refused(forward):
    place = the_place(f"{forward}\nreturn x")
    with pytest.raises(NotRecognised, match="changes tensors in place"):
        place.check_pure(len(place.body) - 1)


@pytest.mark.parametrize(
    "forward",
    [
        "y = x @ x.t()\ny *= 0.125",
        "y = x + 1\ny += x\ny *= 2",
        "n = 1\nn += 1",
        "y = F.silu(x, inplace=False)",
        "y = self.body(self.act(self.norm(x)))",
        "y = x.__abs__()",
        "y = F.leaky_relu(x, 0.2, False)",
        "y = F.dropout(x, 0.5, self.training)",
        "y = self.drop(self.batch(x))",
        "seen = []\nseen.append(x)\ny = seen[0]",
        "y = self.tidy(x)",
        "y = plainly(x)",
        "y = x.max(len(x.shape) - 1).values",
    ],
)
def test_what_changes_nothing_but_its_own_may_stand_before_a_part(forward):
    place = the_place(f"{forward}\nreturn y" if "y =" in forward else f"{forward}\nreturn x")
    place.check_pure(len(place.body) - 1)


@pytest.mark.parametrize("forward", ["y = self.drop(x)", "y = self.batch(x)"])
def test_what_draws_or_counts_in_training_is_refused_there(forward):
    the_place(f"{forward}\nreturn y").check_pure(1)
    with pytest.raises(NotRecognised, match="keeps count"):
        the_place(f"{forward}\nreturn y", training=True).check_pure(1)


def test_what_the_part_is_made_of_counts_as_well():
    place = the_place("return F.relu(x, True)")
    place.check_pure(0)
    with pytest.raises(NotRecognised):
        place.check_pure(0, place.body[0].value)


def test_only_what_comes_before_the_part_counts():
    place = the_place("y = x + 1\nx += 1\nreturn y")
    place.check_pure(1)
    with pytest.raises(NotRecognised):
        place.check_pure(2)
