"""Where a class of a task's file gets its methods from."""

import ast

import pytest

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.lineage import delegates, inherited_method, lineage, with_delegates

torch = pytest.importorskip("torch")

HEAD = "import torch\nfrom torch import nn\n\n"


def names(source: str, entry: str = "Model") -> list[str]:
    found = lineage(ast.parse(source), entry)
    return [each if isinstance(each, str) else each.name for each in found]


def real(source: str) -> list[str]:
    """Python's own order, without what every module has."""
    space: dict[str, type] = {}
    exec(source, space)
    return [each.__name__ for each in space["Model"].__mro__ if each.__name__ not in (
        "Module", "object")]  # fmt: skip


DIAMOND = HEAD + (
    "class A(nn.Module): pass\nclass B(A): pass\nclass C(A): pass\nclass D(C): pass\n"
    "class Model(B, D): pass\n"
)


def test_several_bases_come_in_pythons_own_order():
    assert names(DIAMOND) == real(DIAMOND) == ["Model", "B", "D", "C", "A"]


def test_torchs_own_base_is_known_by_its_full_name():
    source = HEAD + "class A(nn.GroupNorm): pass\nclass Model(A): pass\n"
    assert names(source) == ["Model", "A", "torch.nn.GroupNorm"]


@pytest.mark.parametrize(
    "text",
    [
        "class A(nn.Module): pass\nclass B(A): pass\nclass Model(A, B): pass\n",
        "class Model(nn.GroupNorm, nn.Linear): pass\n",
        "class Model(Model): pass\n",
    ],
)
def test_an_order_that_cannot_be_told_is_no_order(text):
    with pytest.raises(NotRecognised, match="order of the bases"):
        names(HEAD + text)


def test_a_forward_that_is_assigned_is_not_passed_over_for_the_bases_one():
    source = HEAD + (
        "class A(nn.Module):\n    def forward(self, x):\n        return x\n"
        "class Model(A):\n    forward = torch.relu\n"
    )
    with pytest.raises(NotRecognised, match="how 'Model' makes its forward"):
        inherited_method(lineage(ast.parse(source), "Model"), "forward")


def test_inherited_methods_are_called_with_the_same_arguments():
    source = HEAD + (
        "class A(nn.Module):\n    def __init__(self, n: int, /, *rest, k=2, **more):\n"
        "        super().__init__()\n        self.all = (n, rest, k, more)\n"
        "    def forward(self, x, *, by: float = 1.5):\n        return x * by\n"
        "class Model(A):\n    pass\n"
    )
    space: dict[str, type] = {}
    exec(with_delegates(source, "Model"), space)
    made = space["Model"](1, 2, 3, k=4, z=5)
    assert {"__init__", "forward"} <= set(vars(space["Model"]))
    assert made.all == (1, (2, 3), 4, {"z": 5})
    assert made(2.0) == 3.0
    assert made(2.0, by=3.0) == 6.0


def test_torchs_own_forward_is_called_under_its_own_names():
    source = HEAD + "class Model(nn.GroupNorm): pass\n"
    made = {each.name: ast.unparse(each.args) for each in delegates(ast.parse(source), "Model")}
    assert made["forward"] == "self, input"
    assert made["__init__"].startswith("self, num_groups, num_channels, eps=1e-05, affine=True")
    space: dict[str, type] = {}
    exec(with_delegates(source, "Model"), space)
    assert set(space["Model"](2, 4).state_dict()) == {"weight", "bias"}


def test_a_class_with_methods_of_its_own_is_left_as_it_is():
    source = HEAD + "class Model(nn.Module):\n    def forward(self, x):\n        return x\n"
    assert with_delegates(source, "Model") == source
    assert delegates(ast.parse(source), "Model") == []


def test_a_forward_from_elsewhere_is_named_with_its_place():
    source = "from away import Base\n\nclass Model(Base):\n    pass\n"
    with pytest.raises(NotRecognised, match=r"in away\.Base, not in its source"):
        delegates(ast.parse(source), "Model")


def test_a_base_that_has_a_method_called_plain_is_refused():
    source = HEAD + (
        "class A(nn.Module):\n    def plain(self, x):\n        return x\n"
        "    def forward(self, x):\n        return self.plain(x)\nclass Model(A): pass\n"
    )
    with pytest.raises(NotRecognised, match="called plain"):
        delegates(ast.parse(source), "Model")
