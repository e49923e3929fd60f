"""A task's file, read: whose names stand for what."""

import ast
from dataclasses import replace

import pytest
from rule_tasks import a_task

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.attributes import attributes
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.source import Unknown, read_module


def read(*, edit=("", ""), workloads=None, **more):
    """A task that returns its input, with one passage of its text replaced."""
    task = a_task("return x", **more)
    workloads = workloads or task.workloads
    return read_module(replace(task, source=task.source.replace(*edit, 1), workloads=workloads))


def test_names_in_get_inputs_are_its_own_not_the_constructors():
    module = read(
        inputs="torch.randn(2 * dim, dim)", arguments=", dim", init="self.dim = dim", given="7",
        edit=("def get_inputs():", "def get_inputs(dim=4):"),
        workloads=(Workload(), Workload(name="more", arguments=(("dim", 5),))),
    )  # fmt: skip
    (shape,) = module.input_shapes()
    assert [module.sizes(shape, each) for each in module.task.workloads] == [(8, 4), (10, 5)]


def test_a_number_that_a_workload_gives_is_a_number():
    module = read(
        inputs="torch.randn(5, 67), scale", names="x, y",
        edit=("def get_inputs():", "def get_inputs(scale=0.5):"),
        workloads=(Workload(), Workload(name="more", arguments=(("scale", 2.0),))),
    )  # fmt: skip
    assert module.inputs() == [("5", "67"), 0.5]


def test_sizes_that_one_argument_holds_are_several_dimensions():
    assert read(inputs="torch.randn(SIZE)", edit=("class", "SIZE = (4, 5)\nclass")).inputs() == [
        ("4", "5")
    ]
    edit = ("def get_inputs():", "def get_inputs(size=(4, 5, 6)):")
    assert read(inputs="torch.randn(size)", edit=edit).inputs() == [("4", "5", "6")]


def test_what_is_returned_in_several_places_is_not_told():
    body = "def get_inputs(wide=False):\n    if wide:\n        return [torch.randn(5)]\n"
    assert read(edit=("def get_inputs():\n", body)).makers() == []


def test_only_inputs_of_floats_have_a_size_here():
    module = read(inputs="torch.randn(5, 67), torch.rand(5, 67) > 0.5", names="x, y")
    assert module.input_shapes() == [("5", "67"), None]


@pytest.mark.parametrize("inputs", ["torch.ones(3).long()", "torch.zeros(3, dtype=torch.uint8)"])
def test_integers_are_refused_however_they_are_made(inputs):
    with pytest.raises(NotRecognised, match="integer inputs"):
        read(inputs=inputs).inputs()


@pytest.mark.parametrize("returned", ["list(range(3))", "[*range(2)]", "NUMBERS"])
def test_a_constructors_arguments_are_not_taken_for_its_defaults(returned):
    module = read(
        arguments=", dim=3", init="self.dim = dim",
        edit=("    return []\n", f"    return {returned}\n"),
    )  # fmt: skip
    with pytest.raises(Unknown):
        module.plain(ast.Name("dim"))


def test_a_constructors_arguments_may_have_local_names():
    module = read(
        arguments=", dim=3", init="self.dim = dim",
        edit=("    return []\n", "    n = 4\n    return [n]\n"),
    )  # fmt: skip
    assert module.plain(ast.Name("dim")) == 4


@pytest.mark.parametrize(
    ("init", "dtype"),
    [("self.w = nn.Parameter(torch.ones(67))", "float32"),
     ("self.w = nn.Parameter(torch.randn(67) * 67 ** -0.5)", "float32"),
     ("self.w = nn.Parameter(torch.ones(67, dtype=torch.float16))", "float16"),
     ("start = torch.ones(67)\nself.w = nn.Parameter(start.double())", "float64"),
     ("self.register_buffer('w', torch.arange(67))", "int64"),
     ("self.w = nn.LayerNorm(67, dtype=torch.bfloat16)", "bfloat16"),
     ("self.w = nn.Sequential(nn.Linear(67, 67), nn.ReLU())", "float32"),
     ("self.w = nn.Parameter(made())", None),
     ("self.w = nn.LayerNorm(67)\nself.w.to(torch.float64)", None)],
)  # fmt: skip
def test_weights_are_kept_in_what_the_constructor_says(init, dtype):
    assert read(init=init).dtype_of("w") == dtype


LAYER = "self.norm = nn.LayerNorm(67)\nself.other = nn.Linear(67, 67)\n"


@pytest.mark.parametrize(
    ("later", "known"),
    [
        ("self.norm.eps = 0.1", {"other"}),
        ("self.norm.bias = None", {"other"}),
        ("setattr(self.norm, 'eps', 0.1)", {"other"}),
        ("for each in self.modules():\n    each.eps = 0.1", set()),
        ("self.norm.register_parameter('bias', None)", {"other"}),
        ("self.norm.register_forward_pre_hook(print)", {"other"}),
        ("nn.utils.weight_norm(self.other)", {"norm"}),
        ("self.k = 2\nself.k += 1", {"norm", "other"}),
        ("self.k = 2\nself.k, self.j = 3, 4", {"norm", "other"}),
        ("self.k = 1\nfor self.k in (2, 3): pass", {"norm", "other"}),
        ("self.__setattr__('norm', nn.Identity())", set()),
        ("self.__dict__.update(k=3)", set()),
        ("self.other.weight = self.norm.weight", {"norm", "other"}),
        ("self.other.weight.data = self.other.weight.data * 2", {"norm", "other"}),
        ("self.other.bias.requires_grad = False", {"norm", "other"}),
    ],
)
def test_a_layer_that_is_changed_after_it_was_made_is_not_known(later, known):
    assert set(attributes(read(init=LAYER + later).constructor)) == known


@pytest.mark.parametrize(
    "file",
    ["K = 2\nK += 1", "K = 2\nif torch.cuda.device_count() >= 0:\n    K = 3",
     "for K in (2, 3):\n    pass", "K = 2\nwith torch.no_grad():\n    K = 3",
     "K = 2\ndef other():\n    global K\n    K = 3", "K = 2\nK = K + 1", "K, L = 2, 3\nK = 4"],
)  # fmt: skip
def test_a_constant_that_is_set_twice_is_not_known(file):
    module = read(edit=("class Model", f"{file}\n\n\nclass Model"))
    assert "K" not in module.constants
    with pytest.raises(Unknown):
        module.plain(ast.parse("K", mode="eval").body)


@pytest.mark.parametrize("init", ["k = k + 1", "k = k or 1", "k += 1", "(k := 4)", "K = 7"])
def test_what_a_constructor_gives_another_value_is_not_known(init):
    module = read(init=init, arguments=", k=2", given="3",
                  edit=("class Model", "K = 5\n\n\nclass Model"))  # fmt: skip
    name = "K" if init == "K = 7" else "k"
    with pytest.raises(Unknown):
        module.plain(ast.parse(name, mode="eval").body)
    kept = read(init="self.k = k", arguments=", k=2", given="3")
    assert kept.plain(ast.parse("k", mode="eval").body) == 3
