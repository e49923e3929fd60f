from kernelsmith.corpus.inputs.merge import merged

WRAPPED = '''\
import torch
from torch import nn
from types import SimpleNamespace


class Net(nn.Module):
    def __init__(self, config, act, bias=True):
        super(Net, self).__init__()
        self.layer, self.act = nn.Linear(config.dim, config.dim, bias=bias), act

    def forward(self, x):
        return self.act(self.layer(x))


class Model(Net):
    """from somewhere"""

    def __init__(self, dim=8):
        super().__init__(config=SimpleNamespace(dim=dim), act=nn.ReLU())


def get_init_inputs():
    return [8]
'''


def test_a_wrappers_values_move_into_the_module():
    text = merged(WRAPPED)
    assert "class Net" not in text
    assert "class Model(nn.Module):" in text
    assert "def __init__(self, dim=8):" in text
    assert "config = SimpleNamespace(dim=dim)" in text
    assert "act = nn.ReLU()" in text
    assert "bias = True" in text
    assert "super(Model, self)" in text
    assert '"""from somewhere"""' in text
    assert merged(text) == text


def test_a_bare_wrapper_goes():
    text = WRAPPED.replace("\n    def __init__(self, dim=8):\n        super().__init__("
                           "config=SimpleNamespace(dim=dim), act=nn.ReLU())\n", "")  # fmt: skip
    assert "class Model(nn.Module):" in merged(text)
    assert "class Model(Net)" not in merged(text)


def test_what_would_mean_something_else_stays():
    clash = WRAPPED.replace("bias=True", "dim=True")
    assert merged(clash) == clash
    inherited = WRAPPED.replace(
        "    def forward(self, x):\n        return self.act(self.layer(x))\n", ""
    )
    assert merged(inherited) == inherited
