"""What constructors set, read through all that they call."""

import ast

from kernelsmith.propose.rules.attributes import attributes
from kernelsmith.propose.rules.construction import constructor_of

HEAD = "import torch\nfrom torch import nn\n\nEPS = 1e-6\n\n"


def known(text: str) -> dict[str, str]:
    """What ``self.name`` is set to, in the terms of the first constructor's arguments."""
    tree = ast.parse(HEAD + text)
    found = attributes(constructor_of(tree, "Model"))
    return {name: ast.unparse(value) for name, value in found.items()}


BASE = """\
class Base(nn.Module):
    def __init__(self, dim, eps=EPS, *, scale=2.0, **more):
        super().__init__()
        half = dim // 2
        self.dim, self.more = dim, more
        self.eps = eps
        self.scale = scale
        self.half = half
        self.norm = nn.LayerNorm(dim, eps)
"""


def test_arguments_are_followed_into_the_bases_constructor():
    made = known(BASE + "class Model(Base):\n    def __init__(self, width):\n"
                 "        super().__init__(width * 4, scale=3.0)\n")  # fmt: skip
    assert made["norm"] == "nn.LayerNorm(width * 4, EPS)"
    assert made["eps"] == "EPS"
    assert made["scale"] == "3.0"


def test_a_local_name_of_the_base_is_not_taken_for_an_argument_of_that_name():
    made = known(BASE + "class Model(Base):\n    def __init__(self, half):\n"
                 "        super().__init__(half)\n")  # fmt: skip
    assert made["norm"] == "nn.LayerNorm(half, EPS)"
    assert made["half"] == "half_in_Base"


def test_an_argument_that_gets_another_value_is_not_known():
    made = known(
        "class Base(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        n = n + 1\n        self.n = n\n"
        "class Model(Base):\n    def __init__(self, n):\n        super().__init__(n)\n"
    )
    assert made["n"] == "n_in_Base"


def test_starred_arguments_are_followed_where_nothing_is_taken_out_of_them():
    middle = "class Middle(Base):\n    def __init__(self, **rest):\n{0}        super()" \
             ".__init__(dim=8, **rest)\n"  # fmt: skip
    model = "class Model(Middle):\n    def __init__(self, e):\n        super().__init__(eps=e)\n"
    assert known(BASE + middle.format("") + model)["eps"] == "e"
    taken = middle.format("        rest.pop('eps')\n")
    assert known(BASE + taken + model)["eps"] == "eps_in_Base"
    assert known(BASE + taken + model)["norm"] == "nn.LayerNorm(8, eps_in_Base)"


def test_arguments_of_the_model_that_are_starred_leave_the_bases_defaults_open():
    made = known(BASE + "class Model(Base):\n    def __init__(self, **given):\n"
                 "        super().__init__(4, **given)\n")  # fmt: skip
    assert made["norm"] == "nn.LayerNorm(4, eps_in_Base)"


def test_what_a_class_sets_after_its_base_is_what_counts():
    made = known(BASE + "class Model(Base):\n    def __init__(self):\n        super().__init__(4)\n"
                 "        self.norm = nn.RMSNorm(4)\n")  # fmt: skip
    assert made["norm"] == "nn.RMSNorm(4)"
    assert made["scale"] == "2.0"


def test_the_next_class_in_the_order_is_called_not_the_next_base():
    made = known(
        "class A(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.n = n\n"
        "class B(A):\n    def __init__(self, n):\n        super().__init__(n + 1)\n"
        "class C(A):\n    def __init__(self, n):\n        super(C, self).__init__(n * 2)\n"
        "class Model(B, C):\n    def __init__(self, n):\n        B.__init__(self, n)\n"
    )
    assert made["n"] == "(n + 1) * 2"


def test_a_constructor_is_inherited_too():
    assert known(BASE + "class Model(Base):\n    pass\n")["norm"] == "nn.LayerNorm(dim, eps)"


def test_class_attributes_count_where_nobody_sets_them():
    forward = "    def forward(self, x):\n        return x * self.one + self.two + self.three\n"
    made = known(
        "class Base(nn.Module):\n    one = 1.0\n    two: float = 2.0\n    three = 3.0\n"
        "    unread = 4.0\n\n    def change(self):\n        self.three = 5.0\n\n" + forward
        + "class Model(Base):\n    one = EPS\n"
    )  # fmt: skip
    assert made == {"one": "EPS", "two": "2.0"}
