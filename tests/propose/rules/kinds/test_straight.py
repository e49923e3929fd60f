"""Parts of ``forward`` that may be cut out, and what must not change before them."""

import pytest
from rule_tasks import a_task

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.straight import places
from kernelsmith.propose.rules.source import read_module

LAYERS = """self.norm = nn.LayerNorm(67)
self.act = nn.ReLU()
self.own = nn.ReLU(inplace=True)
self.body = nn.Sequential(nn.Linear(67, 67), nn.ReLU(inplace=True))
self.head = nn.Sequential(nn.Identity(), nn.SiLU(inplace=True))"""


def the_place(forward):
    (place,) = places(read_module(a_task(forward, init=LAYERS)))
    return place


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
    ],
)
def test_what_changes_nothing_but_its_own_may_stand_before_a_part(forward):
    place = the_place(f"{forward}\nreturn y" if "y =" in forward else f"{forward}\nreturn x")
    place.check_pure(len(place.body) - 1)


def test_only_what_comes_before_the_part_counts():
    place = the_place("y = x + 1\nx += 1\nreturn y")
    place.check_pure(1)
    with pytest.raises(NotRecognised):
        place.check_pure(2)
